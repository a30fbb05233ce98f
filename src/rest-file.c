#include "rest.h"
int rest_files_put(struct call *c) { (void)c; return answer_error(503,NULL,"x"); }
int rest_files_get(struct call *c) { (void)c; return answer_error(503,NULL,"x"); }
int rest_file_put(struct call *c) { (void)c; return answer_error(503,NULL,"x"); }
int rest_file_get(struct call *c) { (void)c; return answer_error(503,NULL,"x"); }
int rest_tree_put(struct call *c) { (void)c; return answer_error(503,NULL,"x"); }
int rest_tree_get(struct call *c) { (void)c; return answer_error(503,NULL,"x"); }
