/*
 * metrics.h - what the host's ark has done since it was booted, for
 * Prometheus.
 *
 * ARK_RUN/metrics-1 is an array of 64-bit counters that all processes map and
 * add to atomically: nothing is lost by kill -9, nothing ever goes down, and a
 * boot begins at 0.  A file of zeros is a valid one, so there is no moment at
 * which it is half made.  Another layout gets another number in its name.
 *
 * Nothing here fails anybody's request: without the file, nothing is counted.
 */
#ifndef ARK_METRICS_H
#define ARK_METRICS_H

#include "ark.h"

/* Histograms, of seconds: ark_request_seconds ...; bounds of the buckets are
 * 0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 30 60 300 +Inf. */
enum metric_time {
	TIME_REQUEST,  /* any answered request */
	TIME_START,    /* a sandbox out of an image, or a stopped one */
	TIME_EXEC,     /* those that are waited for */
	TIME_SNAPSHOT, /* all of it, not the pause alone */
	TIME_RESTORE,
	TIME_FORK, /* all clones of one request */
	METRIC_TIMES,
};

/* Counters: ark_execs_total{result=...} and so on. */
enum metric_count {
	COUNT_EXEC_OK,	     /* exit code 0 */
	COUNT_EXEC_FAILED,   /* another one, or a signal */
	COUNT_EXEC_TIMEOUT,  /* --timeout */
	COUNT_EXEC_OOM,	     /* the guest's memory ran out */
	COUNT_EXEC_DETACHED, /* left running */
	COUNT_EXEC_ERROR,    /* ark, the VMM or the agent failed */
	COUNT_UNAUTHORIZED,  /* no token or a wrong one */
	COUNT_QUOTA,	     /* refused by quota or rate */
	COUNT_BUSY,	     /* refused: too many at once on this host */
	METRIC_COUNTS,
};

/* Microseconds of CLOCK_MONOTONIC, for differences. */
uint64_t now_us(void);

/* The request's end: ark_requests_total{code=...}, and its time. */
void metrics_request(int status, uint64_t us);

void metrics_time(enum metric_time which, uint64_t us);
void metrics_count(enum metric_count which);

/* All of it in the text format 0.0.4, with gauges of the sandboxes that there
 * are; `private`: the memory that only they have as well (usage.h says what
 * that costs).  0, or the negative exit code, told. */
int metrics_print(FILE *out, bool private);

/* The gauges alone, in metrics-gauges.c. */
int metrics_gauges(FILE *out, bool private);

#endif
