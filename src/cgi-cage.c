/*
 * cgi-cage.c - where foreign bytes are parsed.
 *
 * Whoever takes this process over has what is left of it: it may read what the
 * parent left open, write its verdict, use up its own memory and time, and end.
 * No file, no socket, no process, no code that was not there before.  Memory
 * and time are bounded by rlimits, which the parent's deadline stands behind.
 */
#include "cgi.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define MEMORY_MAX (64u << 20)
#define CPU_SECONDS 10

#define LOAD(member)                                                           \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS,                                     \
		 (uint32_t)offsetof(struct seccomp_data, member))
#define END(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define ALLOW(number)                                                          \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                   \
		END(SECCOMP_RET_ALLOW)

static int limit(int what, rlim_t most)
{
	const struct rlimit l = {.rlim_cur = most, .rlim_max = most};

	return setrlimit((__rlimit_resource_t)what, &l);
}

int cage(void)
{
	struct sock_filter filter[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		END(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		ALLOW(SYS_read),
		ALLOW(SYS_write),
		ALLOW(SYS_exit_group),
		ALLOW(SYS_brk),
		ALLOW(SYS_munmap),
		ALLOW(SYS_mremap),
		ALLOW(SYS_madvise),
		ALLOW(SYS_clock_gettime),
		ALLOW(SYS_getrandom), /* malloc() */
		ALLOW(SYS_rt_sigreturn),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
		END(SECCOMP_RET_KILL_PROCESS),
		/* Memory only: no executable one, no file. */
		LOAD(args[2]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 3, 0),
		LOAD(args[3]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 1),
		END(SECCOMP_RET_ALLOW),
		END(SECCOMP_RET_KILL_PROCESS),
	};
	const struct sock_fprog program = {
		.len = ARRAY_LEN(filter),
		.filter = filter,
	};

#ifdef __SANITIZE_ADDRESS__
	(void)program;
	return 0; /* its runtime has needs of its own, memory among them */
#endif
	if (limit(RLIMIT_DATA, MEMORY_MAX) < 0 ||
	    limit(RLIMIT_CPU, CPU_SECONDS) < 0 || limit(RLIMIT_CORE, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
