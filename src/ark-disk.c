/*
 * ark-disk - root images and writable disks: import, clone, resize, list,
 * verify, remove.
 *
 * A disk that a guest has written is a row of bytes here, see disk.c.  Several
 * names: goes on after a failure, and the first failure is the exit code.
 */
#include "disk.h"
#include "image.h"
#include "stage.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <sys/stat.h>

static const char usage_line[] = "ark-disk VERB [OPTION]... [NAME]...";
static const char help[] =
	"Usage: ark-disk import [-fl] DIR IMAGE\n"
	"       ark-disk clone [--size SIZE] IMAGE NAME\n"
	"       ark-disk resize NAME SIZE\n"
	"       ark-disk ls [-q] [--json]\n"
	"       ark-disk images [-q] [--json]\n"
	"       ark-disk inspect|verify|rm IMAGE...\n"
	"       ark-disk check-free [-f] IMAGE\n"
	"       ark-disk sweep\n"
	"\n"
	"  import      seal DIR (kernel, initrd, base and perhaps disk, "
	"recipe,\n"
	"              kernel_release) as an image\n"
	"  clone       make a sandbox of an image, as ark create does\n"
	"  resize      make the disk of a stopped sandbox larger\n"
	"  ls          writable disks and images\n"
	"  images      images with their sizes and kernels\n"
	"  inspect     manifests and allocated bytes, one JSON line each\n"
	"  verify      compare the files with the digests of the manifest\n"
	"  rm          remove images; sandboxes keep what they run on\n"
	"  check-free  73 when the image exists\n"
	"  sweep       remove what builds that died have left\n"
	"\n"
	"  -f, --force     replace an image of that name\n"
	"  -l, --link      take the files by hard link instead of copying "
	"them\n"
	"  -q, --quiet     names only\n"
	"      --json      JSON lines\n"
	"      --size SIZE size of the disk, such as 20G\n"
	"  -h, --help      show this and exit\n"
	"      --version   show the version and exit\n";

struct options {
	unsigned import; /* IMPORT_* */
	uint64_t size;
	bool quiet;
	bool json;
};

/* A list goes on after what cannot be shown, as with several names. */
struct listing {
	const struct options *o;
	int result;
};

static int import(char **args, const struct options *o)
{
	return image_import(args[0], args[1], o->import);
}

static int clone_image(char **args, const struct options *o)
{
	struct sandbox_spec spec = {.image = args[0], .disk_size = o->size};
	int r = sandbox_create(args[1], &spec);

	if (r == 0)
		puts(args[1]);
	return r;
}

/* The file first: a disk that is larger than recorded is as good as before,
 * and the same command again sets it right. */
static int resize(char **args, const struct options *o)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	const char *why;
	uint64_t size;
	int r;

	(void)o;
	if (!parse_size(args[1], &size, &why) || size > INT64_MAX - 4096)
		return fail(EX_USAGE, "bad size '%s': %s", args[1], why);
	r = sandbox_open(&s, args[0]);
	if (r < 0)
		return r;
	r = sandbox_lock(&s);
	if (r < 0)
		return r;
	if (s.state == VM_RUNNING || s.state == VM_PAUSED)
		return fail(EX_CANTCREAT, "sandbox '%s' is %s: stop it first",
			    s.name, state_word(&s));
	size = (size + 4095) & ~4095ULL;
	r = disk_grow(s.dir, "disk", size);
	if (r == 0 && write_value(s.dir, "disk-size", "%llu",
				  (unsigned long long)size) < 0)
		return fail_errno(EX_IOERR, "cannot write disk-size");
	return r;
}

/* ---- lists -------------------------------------------------------------- */

static void print_json(json_t *object)
{
	char *text = json_dumps(object, JSON_COMPACT);

	if (text)
		puts(text);
	free(text);
	json_decref(object);
}

static void print_disk(const char *kind, const char *name, uint64_t size,
		       uint64_t allocated, const struct options *o)
{
	char sizes[16], used[16];

	if (o->json) {
		print_json(json_pack("{ss ss sI sI}", "kind", kind, "name",
				     name, "size", (json_int_t)size,
				     "allocated", (json_int_t)allocated));
		return;
	}
	if (o->quiet) {
		puts(name);
		return;
	}
	format_size(sizes, sizeof(sizes), size);
	format_size(used, sizeof(used), allocated);
	printf("%-5s  %-24s  %6s  %9s\n", kind, name, sizes, used);
}

static int list_sandbox(const char *name, void *data)
{
	const struct listing *listing = data;
	AUTO_CLOSE int vms = root_open("vm");
	AUTO_CLOSE int dir = -1;
	struct stat st;

	if (vms < 0)
		return vms;
	dir = open_dir(vms, name);
	/* Removed meanwhile, or not a sandbox: readers do not lock. */
	if (dir < 0 || fstatat(dir, "disk", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	print_disk("disk", name, (uint64_t)st.st_size,
		   allocated_bytes(st.st_blocks), listing->o);
	return 0;
}

/* Bytes of one file of an image, added to the sums. */
static void add_size(int dir, const char *file, uint64_t *size,
		     uint64_t *allocated)
{
	struct stat st;

	if (fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	*size += (uint64_t)st.st_size;
	*allocated += allocated_bytes(st.st_blocks);
}

static int list_image(const char *name, void *data)
{
	static const char *const files[] = {"kernel", "initrd", "base", "disk"};
	struct listing *listing = data;
	AUTO_CLOSE int dir = image_open(name);
	uint64_t size = 0, allocated = 0;

	if (dir < 0) {
		listing->result = dir;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		add_size(dir, files[i], &size, &allocated);
	print_disk("image", name, size, allocated, listing->o);
	return 0;
}

static int list(char **args, const struct options *o)
{
	struct listing listing = {.o = o};
	int r;

	AUTO_CLOSE int root = root_open(NULL);

	(void)args;
	if (root < 0)
		return root;
	if (!o->json && !o->quiet)
		printf("%-5s  %-24s  %6s  %9s\n", "KIND", "NAME", "SIZE",
		       "ALLOCATED");
	r = sandbox_each(list_sandbox, &listing);
	if (r == 0)
		r = names_each("image", list_image, &listing);
	return r ? r : listing.result;
}

/* A manifest with the bytes that each file occupies; NULL, told. */
static json_t *describe(int dir, const char *name)
{
	static const char *const files[] = {"kernel", "initrd", "base", "disk"};
	json_t *manifest = image_manifest(dir, name);
	json_t *allocated = json_object();

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		uint64_t size = 0, used = 0;

		add_size(dir, files[i], &size, &used);
		json_object_set_new(allocated, files[i],
				    json_integer((json_int_t)used));
	}
	if (!manifest)
		json_decref(allocated);
	else
		json_object_set_new(manifest, "allocated", allocated);
	return manifest;
}

static const char *text_of(const json_t *manifest, const char *key)
{
	const char *text = json_string_value(json_object_get(manifest, key));

	return text ? text : "-";
}

static void print_image(const char *name, const json_t *manifest)
{
	const json_t *sizes = json_object_get(manifest, "allocated");
	char created[24], release[48], recipe[24], used[16];
	json_int_t sum = 0;
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)sizes, key, value) sum +=
		json_integer_value(value);
	format_size(used, sizeof(used), (uint64_t)sum);
	printable(recipe, sizeof(recipe), text_of(manifest, "recipe"));
	printable(release, sizeof(release),
		  text_of(manifest, "kernel_release"));
	printable(created, sizeof(created), text_of(manifest, "created"));
	printf("%-24s  %-10s  %6s  %-28s  %s\n", name, recipe, used, release,
	       created);
}

static int show_image(const char *name, const struct options *o)
{
	AUTO_CLOSE int dir = image_open(name);
	json_t *manifest;

	if (dir < 0)
		return dir;
	manifest = describe(dir, name);
	if (!manifest)
		return -EX_DATAERR;
	if (o->json) {
		print_json(manifest);
		return 0;
	}
	print_image(name, manifest);
	json_decref(manifest);
	return 0;
}

static int images_line(const char *name, void *data)
{
	struct listing *listing = data;
	int r = 0;

	if (listing->o->quiet)
		puts(name);
	else
		r = show_image(name, listing->o);
	if (r < 0)
		listing->result = r;
	return 0;
}

static int images(char **args, const struct options *o)
{
	struct listing listing = {.o = o};
	int r;
	AUTO_CLOSE int root = root_open(NULL);

	(void)args;
	if (root < 0)
		return root;
	if (!o->json && !o->quiet)
		printf("%-24s  %-10s  %6s  %-28s  %s\n", "NAME", "RECIPE",
		       "SIZE", "KERNEL", "CREATED");
	r = names_each("image", images_line, &listing);
	return r ? r : listing.result;
}

/* ---- images by name ----------------------------------------------------- */

static int inspect(char **args, const struct options *o)
{
	struct options json = *o;

	json.json = true;
	return show_image(args[0], &json);
}

static int verify(char **args, const struct options *o)
{
	AUTO_CLOSE int dir = image_open(args[0]);
	int r;

	(void)o;
	if (dir < 0)
		return dir;
	r = image_digest_check(dir, args[0]);
	if (r == 0)
		printf("%s: ok\n", args[0]);
	return r;
}

static int rm(char **args, const struct options *o)
{
	(void)o;
	return image_remove(args[0]);
}

static int check_free(char **args, const struct options *o)
{
	if (o->import & IMPORT_REPLACE)
		return check_name("image", args[0]);
	return image_check_free(args[0]);
}

static int sweep(char **args, const struct options *o)
{
	(void)args;
	(void)o;
	return stage_sweep("image");
}

/* ---- main --------------------------------------------------------------- */

static const struct verb {
	const char *name;
	int args; /* so many, or -1: each of them is a call */
	int (*run)(char **args, const struct options *o);
	const char *options;
} verbs[] = {
	/* clang-format off */
	{"import",	2,  import,	 "fl"},
	{"clone",	2,  clone_image, "s"},
	{"resize",	2,  resize,	 ""},
	{"ls",		0,  list,	 "qj"},
	{"images",	0,  images,	 "qj"},
	{"inspect",	-1, inspect,	 ""},
	{"verify",	-1, verify,	 ""},
	{"rm",		-1, rm,		 ""},
	{"check-free",	1,  check_free,	 "f"},
	{"sweep",	0,  sweep,	 ""},
	/* clang-format on */
};

static void parse_option(int c, struct options *o)
{
	const char *why;

	switch (c) {
	case 'f':
		o->import |= IMPORT_REPLACE;
		break;
	case 'l':
		o->import |= IMPORT_LINK;
		break;
	case 'q':
		o->quiet = true;
		break;
	case 'j':
		o->json = true;
		break;
	case 's':
		if (!parse_size(optarg, &o->size, &why))
			die(EX_USAGE, "bad size '%s': %s", optarg, why);
		break;
	default:
		break;
	}
}

static void parse(int argc, char **argv, const struct verb *verb,
		  struct options *o)
{
	static const struct option table[] = {
		{"force", no_argument, NULL, 'f'},
		{"link", no_argument, NULL, 'l'},
		{"quiet", no_argument, NULL, 'q'},
		{"json", no_argument, NULL, 'j'},
		{"size", required_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "+fhlq", table, NULL)) != -1) {
		if (c == 'h' || c == 'V') {
			fputs(c == 'h' ? help : "ark-disk " ARK_VERSION "\n",
			      stdout);
			exit(finish(0));
		}
		if (c == '?')
			die_option(argv);
		if (!verb || !strchr(verb->options, c))
			die_usage(usage_line);
		parse_option(c, o);
	}
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (strcmp(name, verbs[i].name) == 0)
			return &verbs[i];
	die(EX_USAGE, "no verb '%s' (try --help)", name);
}

int main(int argc, char **argv)
{
	struct options o = {0};
	const struct verb *verb = NULL;
	int result = 0, left;

	progname = "ark-disk";
	if (argc > 1 && argv[1][0] != '-')
		verb = find_verb(argv[1]);
	if (verb) {
		argv++;
		argc--;
		argv[0] = (char *)(uintptr_t)progname;
	}
	parse(argc, argv, verb, &o);
	left = argc - optind;
	if (!verb || (verb->args >= 0 ? left != verb->args : left < 1))
		die_usage(usage_line);
	if (verb->args >= 0)
		return finish(verb->run(argv + optind, &o));
	for (; optind < argc; optind++) {
		int r = verb->run(argv + optind, &o);

		if (result == 0)
			result = r;
	}
	return finish(result);
}
