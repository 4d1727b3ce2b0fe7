// SPDX-License-Identifier: Apache-2.0
// Calls CUDA as it is told, by lines on its standard input: see ../doc.go.
#include "api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct dim3 one = {1, 1, 1};

// Contexts that were created, oldest first.
static address contexts[16];
static unsigned created;

// Where the next mapping is: all are in a row.
static address top = 0x600000000000;

// How a function is called, whatever it is: f is its address.
#define ALLOC(name, symbol, args)                                              \
	static int call_##name(void *f, address *out, size_t size)                 \
	{                                                                          \
		address a = 0;                                                         \
		size_t pitch = 0;                                                      \
		struct pitched pitched = {0};                                          \
		int result = ((__typeof__(&symbol))f)args;                             \
		(void)pitch, (void)size;                                               \
		*out = a + pitched.address;                                            \
		return result;                                                         \
	}
#define FREE(name, args) \
	static int call_##name(void *f, address *in, size_t size) { address a = *in; return (void)size, ((__typeof__(&name))f)args; }
#define LAUNCH(name, args) \
	static int call_##name(void *f, address *in, size_t size) { return (void)in, (void)size, ((__typeof__(&name))f)args; }
#define DEVICE LAUNCH
#include "runtime.def"
#include "driver.def"
#undef ALLOC
#undef FREE
#undef LAUNCH
#undef DEVICE

struct function {
	const char *name, *symbol;
	int (*call)(void *, address *, size_t);
	void *linked; // of a static runtime
	void *f;
};

#ifdef STATIC
#define LINKED(symbol) symbol
#else
#define LINKED(symbol) 0
#endif
static struct function functions[] = {
#define ALLOC(name, symbol, args) {#name, #symbol, call_##name, LINKED(symbol), 0},
#define FREE(name, args) {#name, #name, call_##name, LINKED(name), 0},
#define LAUNCH(name, args) {#name, #name, call_##name, LINKED(name), 0},
#define DEVICE LAUNCH
#include "runtime.def"
#undef LINKED
#define LINKED(symbol) 0
#include "driver.def"
};

static void *libraries[16];
static int loaded;

static struct function *find(const char *name)
{
	for (size_t i = 0; name && i < sizeof functions / sizeof *functions; i++) {
		struct function *f = &functions[i];
		if (strcmp(f->name, name))
			continue;
		f->f = f->linked;
		for (int l = loaded - 1; l >= 0 && !f->f; l--)
			f->f = dlsym(libraries[l], f->symbol);
		return f->f ? f : 0;
	}
	return 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static address *kept;
static size_t held, room;

static void keep(address a)
{
	pthread_mutex_lock(&lock);
	if (held == room)
		kept = realloc(kept, (room = room ? 2 * room : 1024) * sizeof *kept);
	kept[held++] = a;
	pthread_mutex_unlock(&lock);
}

static address take(void)
{
	pthread_mutex_lock(&lock);
	address a = held ? kept[--held] : 0;
	pthread_mutex_unlock(&lock);
	return a;
}

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

struct job {
	char what; // of the command
	struct function *f, *g;
	long n;
	size_t size;
	long rate;
	long good, bad;
};

static void *work(void *argument)
{
	struct job *j = argument;
	long long start = now();
	for (long i = 0; i < j->n; i++) {
		address a = 0;
		int result = 0;
		switch (j->what) {
		case 'a':
			if (!(result = j->f->call(j->f->f, &a, j->size)))
				keep(a);
			break;
		case 'f':
			a = take();
			if ((result = j->f->call(j->f->f, &a, 0)))
				keep(a);
			break;
		case 'u':
			a = (1ULL << 60) + (i << 21);
			result = j->f->call(j->f->f, &a, 0);
			break;
		case 'r':
			a = kept[held + i]; // taken before
			result = j->f->call(j->f->f, &a, 0);
			break;
		case 'c':
			result = j->f->call(j->f->f, &a, j->size);
			result |= j->g->call(j->g->f, &a, 0);
			if (j->rate) {
				long long due = start + (i + 1) * 1000000000LL / j->rate, left = due - now();
				if (left > 1000000)
					usleep(left / 1000);
			}
			break;
		case 'm':
			a = kept[held - j->n + i];
			if (!(result = j->f->call(j->f->f, &a, j->size)))
				top += j->size;
			break;
		case 'U':
			if (!(result = j->f->call(j->f->f, 0, j->size)))
				top -= j->size;
			break;
		case 'd':
			result = j->f->call(j->f->f, 0, j->size);
			break;
		default: // a launch, or freeing NULL
			result = j->f->call(j->f->f, &a, 0);
		}
		if (result)
			j->bad++;
		else
			j->good++;
	}
	return 0;
}

// It has a frame of its own, so that calls are made from further down the stack than by leave.
static __attribute__((noinline)) void run(struct job job, int threads)
{
	pthread_t ids[64];
	struct job jobs[64];
	if (threads > 64)
		threads = 64;
	if (threads < 2) {
		threads = 1;
		jobs[0] = job;
		work(&jobs[0]);
	} else {
		for (int i = 0; i < threads; i++) {
			jobs[i] = job;
			pthread_create(&ids[i], 0, work, &jobs[i]);
		}
		for (int i = 0; i < threads; i++)
			pthread_join(ids[i], 0);
	}
	for (int i = 1; i < threads; i++) {
		jobs[0].good += jobs[i].good;
		jobs[0].bad += jobs[i].bad;
	}
	printf("ok %ld %ld\n", jobs[0].good, jobs[0].bad);
}

static sigjmp_buf before;

static void jump(int signal)
{
	(void)signal;
	siglongjmp(before, 1);
}

// leave calls a function that allocates, or launches, with a pointer to nowhere, and goes on from before it, further up the stack than where others are
// called.
static void leave(struct function *f, size_t size)
{
	struct sigaction jumps = {.sa_handler = jump, .sa_flags = SA_NODEFER}, old;
	sigaction(SIGSEGV, &jumps, &old);
	if (!sigsetjmp(before, 1))
		((int (*)(address *, size_t))f->f)((address *)8, size);
	sigaction(SIGSEGV, &old, 0);
	puts("ok");
}

static long number(void)
{
	char *word = strtok(0, " \n");
	return word ? atol(word) : 0;
}

static void obey(char *line, char **argv)
{
	char *word = strtok(line, " \n"), *name;
	if (!word) {
		puts("error: empty");
	} else if (!strcmp(word, "load")) {
		void *library = loaded < 16 ? dlopen(strtok(0, " \n"), RTLD_NOW) : 0;
		if (library)
			libraries[loaded++] = library;
		puts(library ? "ok" : dlerror());
	} else if (!strcmp(word, "unload")) {
		puts(loaded && !dlclose(libraries[--loaded]) ? "ok" : "error");
	} else if (!strcmp(word, "fork")) {
		pid_t child = fork();
		if (child)
			waitpid(child, 0, 0);
		else
			printf("ok %d\n", getpid());
	} else if (!strcmp(word, "exec")) {
		puts("ok");
		execv("/proc/self/exe", argv);
		puts("error: exec");
	} else if (!strcmp(word, "title")) {
		// In place of the arguments, and of the environment where it is longer.
		char *last = argv[0];
		for (char **a = argv; *a; a++)
			last = *a + strlen(*a);
		word = strtok(0, "\n");
		memset(argv[0], 0, last - argv[0]);
		memcpy(argv[0], word, strlen(word) + 1);
		puts("ok");
	} else if (!strcmp(word, "cpu")) {
		struct timespec t;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
		printf("ok %lld\n", t.tv_sec * 1000000000LL + t.tv_nsec);
	} else if (!strcmp(word, "exit")) {
		puts("ok");
		_exit(0);
	} else {
		struct job job = {.what = *word, .f = find(name = strtok(0, " \n"))};
		if (!strcmp(word, "unmap"))
			job.what = 'U';
		if (!strcmp(word, "churn") || !strcmp(word, "rate")) {
			job.what = 'c';
			name = strtok(0, " \n");
			if (!(job.g = find(name)))
				job.f = 0;
		}
		if (!job.f) {
			printf("error: no function %s\n", name);
			return;
		}
		if (!strcmp(word, "leave")) {
			leave(job.f, number());
			return;
		}
		job.n = strcmp(word, "null") && job.what != 'd' ? number() : 1;
		if (job.what == 'a' || job.what == 'c' || job.what == 'd' || job.what == 'm' || job.what == 'U')
			job.size = number();
		if (!strcmp(word, "rate"))
			job.rate = number();
		run(job, number());
	}
}

static void *listen(void *argv)
{
	char line[4096];
	while (fgets(line, sizeof line, stdin)) {
		if (!strcmp(line, "retire\n")) {
			pthread_t next;
			pthread_create(&next, 0, listen, argv);
			pthread_exit(0);
		}
		obey(line, argv);
	}
	exit(0);
}

int main(int argc, char **argv)
{
	(void)argc;
	setvbuf(stdin, 0, _IONBF, 0); // a child and the next program read on
	setvbuf(stdout, 0, _IOLBF, 0);
	listen(argv);
}
