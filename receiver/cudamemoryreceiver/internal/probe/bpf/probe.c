// SPDX-License-Identifier: (GPL-2.0 OR MIT)
// Counts memory that processes allocate on GPUs, and kernels that they launch. See ../doc.go for what counts.
#include "kernel.h"

char __license[] SEC("license") = "Dual MIT/GPL";

// What a function does: the lower half of its probe's cookie. The same numbers are in ../functions.go. The upper half is the
// number of the file that it is in.
enum kind {
	ALLOC = 1, // (void **out, size_t size)
	MANAGED,   // the same, of memory that may be the host's
	PITCH,     // (void **out, size_t *pitch, size_t width, size_t height)
	EXTENT,    // (struct {void *out; size_t pitch; …} *, struct {size_t width, height, depth;})
	CREATE,    // (handle *out, size_t size, struct properties *)
	FREE,      // (void *address)
	RELEASE,   // (handle)
	DEVICE,    // (int device)
	RETAIN,    // (context *out, int device)
	CONTEXT,   // (context *out, …)
	DESTROY,   // (context)
	RESET,     // of a device: (), (int device)
	ACQUIRE,   // (handle *out, …): once more, or what another process has created
	MAP,       // (void *address, size_t size, size_t offset, handle)
	UNMAP,     // (void *address, size_t size): one mapping, or several in a row
	SHARED,    // (void **out, …): memory of another process
};

enum drop { DROP_LIVE, DROP_PROCESSES, DROP_THREADS, DROP_UNREADABLE, DROP_RING, DROP_UNKNOWN_FREES, DROP_UNRETURNED, DROPS };

// How many calls there may be below one.
#define NESTED 256

enum { SIZE_BUCKETS = 48, LAUNCH_BUCKETS = 192 };

// Set before loading.
const volatile __u8 notify;
const volatile __u64 window; // ns: a process is told of once in it
const volatile __u64 share; // live allocations that one process may have of those that all may
// An element n counts durations above launch_bounds[n] ns; the rest is all ones.
const volatile __u64 launch_bounds[256];

__u64 dropped[DROPS];
// How often a process ended, or lost a context, while it had live allocations: they are in the map still.
__u64 abandoned;
__u32 last_id;

// What tells allocations apart: handles, and what is mapped of them, live on when a context goes.
enum space { ADDRESS, HANDLE, MAPPING, SPACES };

// A process, or rather one program in it: exec makes another.
struct process {
	__u32 pid;
	__u32 ended;
	__u64 start; // clock ticks since boot
	__u64 held[SPACES]; // bytes that are live
	__u64 managed;      // of these
	__u64 entries[SPACES]; // in the map of live allocations
	__u64 allocated, freed, released;
	__u64 allocations, frees, failures, free_failures, unknown_frees, missed, unreturned;
	__u64 devices; // a bit for each one that was named
	__u32 contexts; // that were created, and not destroyed
	__u32 generation; // of the addresses: each reset makes another
	__u64 launches, launch_sum;
	__u64 changed, told; // ns of the monotonic clock
	__u64 sizes[SIZE_BUCKETS];
	__u64 launch_durations[LAUNCH_BUCKETS];
};

// The outermost call that a thread is in. The stack pointer tells whether another one is below it (the driver's below the
// runtime's), or whether this one was left without returning.
struct thread {
	__u32 id;
	__u32 file;
	__u32 kind;
	__u32 generation; // of the process, when it entered
	__u32 nested, launch_nested; // calls below this one
	__u64 sp; // 0: in no call
	__u64 ip;
	__u64 arg;
	__u64 size;
	__u64 aux;
	__u64 launch_sp, launched;
};

// As ../read.go reads it.
struct key {
	__u64 address;
	__u32 id;
	__u32 space; // and above its two lowest bits the generation of an address
};

// What is in the map of live allocations: memory, and for each of its handles where it is mapped.
struct allocation {
	__u64 size; // with HOST and ANYWHERE
	// Of a handle, how many hold it: who created it, retained it or mapped it. The memory lives until nobody does. Of a mapping, the handle.
	__u64 other;
};

// In the size of a live allocation, and of a free: not on a device; and on one or on the host, as it is used.
#define HOST (1ULL << 63)
#define ANYWHERE (1ULL << 61)
// In the size of a free: what is freed was not known.
#define UNKNOWN (1ULL << 62)
#define BYTES (ANYWHERE - 1)

// As ../changes.go reads it.
struct note {
	__u64 at; // ns of the monotonic clock
	__u32 id;
	__u32 ended;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32); // tgid
	__type(value, __u32); // id
} identities SEC(".maps");

// Big, and few: allocated when needed.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, __u32); // id
	__type(value, struct process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32); // tid
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct key);
	__type(value, struct allocation);
} live SEC(".maps");

// Files that turned out to be another one, by their numbers.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u32);
} twins SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} notes SEC(".maps");

static const struct process nothing;

static __always_inline void drop(enum drop why)
{
	__sync_fetch_and_add(&dropped[why], 1);
}

static __always_inline void add(__u64 *counter, __u64 n)
{
	__sync_fetch_and_add(counter, n);
}

static __always_inline void tell(struct process *p, __u32 id, __u64 now, __u32 ended)
{
	struct note n = {.at = now, .id = id, .ended = ended};
	if (bpf_ringbuf_output(&notes, &n, sizeof n, 0)) {
		drop(DROP_RING);
		p->told = 0; // the next change tries again
	}
}

// changed tells of a process at most once in the window: who is told looks when the window has passed, and so sees the last
// change in it, too.
static __always_inline void changed(struct process *p, __u32 id)
{
	if (!notify)
		return;
	__u64 now = bpf_ktime_get_ns();
	p->changed = now;
	if (now - p->told < window)
		return;
	p->told = now;
	tell(p, id, now, 0);
}

static __noinline int new_thread(__u32 tid, __u32 tgid)
{
	__u32 *known = bpf_map_lookup_elem(&identities, &tgid);
	if (!known) {
		__u32 fresh = __sync_fetch_and_add(&last_id, 1) + 1;
		bpf_map_update_elem(&identities, &tgid, &fresh, BPF_NOEXIST);
		known = bpf_map_lookup_elem(&identities, &tgid); // or of another thread that was faster
		if (!known) {
			drop(DROP_PROCESSES);
			return 0;
		}
	}
	__u32 id = *known;
	struct process *p = bpf_map_lookup_elem(&processes, &id);
	if (!p) {
		bpf_map_update_elem(&processes, &id, &nothing, BPF_NOEXIST);
		p = bpf_map_lookup_elem(&processes, &id);
		if (!p) {
			drop(DROP_PROCESSES);
			return 0;
		}
	}
	if (!p->pid) { // several threads may write the same
		struct task_struct *task = (void *)bpf_get_current_task();
		p->start = BPF_CORE_READ(task, group_leader, start_boottime) / 10000000;
		__sync_val_compare_and_swap(&p->pid, 0, tgid); // after start: who sees it, sees that
	}
	struct thread fresh = {.id = id};
	if (bpf_map_update_elem(&threads, &tid, &fresh, BPF_ANY)) {
		drop(DROP_THREADS);
		return 0;
	}
	return 1;
}

static __always_inline struct thread *this_thread(void)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 tid = ids;
	struct thread *t = bpf_map_lookup_elem(&threads, &tid);
	if (t || !new_thread(tid, ids >> 32))
		return t;
	return bpf_map_lookup_elem(&threads, &tid);
}

// known_thread is one that entered a function before.
static __always_inline struct thread *known_thread(void)
{
	__u32 tid = bpf_get_current_pid_tgid();
	return bpf_map_lookup_elem(&threads, &tid);
}

// returned tells whether a return with this stack pointer is that of the call entered at entry, which a return leaves behind;
// else it is one below it.
static __always_inline int returned(__u64 entry, __u64 sp)
{
#if defined(__TARGET_ARCH_x86)
	return sp > entry; // the return address is off the stack
#else
	return sp >= entry;
#endif
}

static __always_inline struct process *process_of(const struct thread *t)
{
	struct process *p = bpf_map_lookup_elem(&processes, &t->id);
	if (!p)
		drop(DROP_PROCESSES);
	return p;
}

static __always_inline int is_free(__u32 kind)
{
	return kind == FREE || kind == RELEASE;
}

static __always_inline __u32 space_of(const struct thread *t)
{
	return t->kind == CREATE || t->kind == RELEASE || t->kind == ACQUIRE ? HANDLE : ADDRESS;
}

static __always_inline struct key key_of(const struct process *p, const struct thread *t, __u64 address)
{
	struct key k = {
		.address = address,
		.id = t->id,
		.space = space_of(t) == HANDLE ? HANDLE : p->generation << 2,
	};
	return k;
}

// missed counts an allocation that is not remembered, for want of room.
static __always_inline void missed(struct process *p)
{
	add(&p->missed, 1);
	drop(DROP_LIVE);
}

// gone tells whether what a call is about went with its context while the call was on its way.
static __always_inline int gone(const struct process *p, const struct thread *t)
{
	return space_of(t) == ADDRESS && t->generation != p->generation;
}

// put_back makes live again what a free that did not succeed was about.
static __always_inline void put_back(struct process *p, struct thread *t)
{
	if (t->size & UNKNOWN || gone(p, t))
		return;
	struct key k = key_of(p, t, t->arg);
	if (t->aux) { // it is held by others, too
		struct allocation *known = bpf_map_lookup_elem(&live, &k);
		if (known)
			add(&known->other, 1);
		return;
	}
	struct allocation was = {.size = t->size, .other = 1};
	if (bpf_map_update_elem(&live, &k, &was, BPF_NOEXIST))
		missed(p);
	else
		add(&p->entries[space_of(t)], 1);
}

static __always_inline int room(const struct process *p)
{
	return p->entries[ADDRESS] + p->entries[HANDLE] + p->entries[MAPPING] < share;
}

// given_back counts memory that is not there any more.
static __always_inline void given_back(struct process *p, __u32 id, enum space space, __u64 size)
{
	if (size & HOST)
		return;
	__u64 bytes = size & BYTES;
	add(&p->held[space], -bytes);
	if (size & ANYWHERE)
		add(&p->managed, -bytes);
	add(&p->freed, bytes);
	add(&p->frees, 1);
	changed(p, id);
}

// let_go takes one of those that hold a handle. The memory goes with the last one.
static __always_inline void let_go(struct process *p, __u32 id, __u64 handle)
{
	struct key k = {.address = handle, .id = id, .space = HANDLE};
	struct allocation *of = bpf_map_lookup_elem(&live, &k);
	if (!of || __sync_fetch_and_add(&of->other, -1) > 1)
		return;
	__u64 size = of->size;
	if (bpf_map_delete_elem(&live, &k))
		return;
	add(&p->entries[HANDLE], -1);
	given_back(p, id, HANDLE, size);
}

// A piece of addresses that is unmapped.
struct range {
	struct process *p;
	__u64 at, end;
	__u32 id;
	__u32 known, unknown; // whether anything in it was
};

// What is mapped is a multiple of it.
#define GRANULE (1ULL << 21)

// unmap takes the first mapping out of a range. What is not in it to its end is not unmapped: the driver refuses that.
static long unmap(__u64 i, struct range *r)
{
	if (r->at >= r->end)
		return 1;
	struct key k = {.address = r->at, .id = r->id, .space = MAPPING};
	struct allocation *of = bpf_map_lookup_elem(&live, &k);
	if (!of || !of->size || of->size > r->end - r->at) {
		r->unknown = 1;
		r->at += GRANULE;
		return 0;
	}
	__u64 handle = of->other;
	r->at += of->size;
	if (bpf_map_delete_elem(&live, &k))
		return 0;
	r->known = 1;
	add(&r->p->entries[MAPPING], -1);
	let_go(r->p, r->id, handle);
	return 0;
}

// unmapped takes what is unmapped when the call begins: when it returns, another thread may have been given the handle already. It is what
// the size of the call is to be: UNKNOWN where something of it was not known, and 0 where all of it was not.
static __noinline __u64 unmapped(struct process *p, __u32 id, __u64 at, __u64 size)
{
	struct range r = {.p = p, .at = at, .end = at + size, .id = id};
	if (!p)
		return 0;
	bpf_loop(1 << 18, unmap, &r, 0); // half a TiB of what is not known
	return (r.unknown || r.at < r.end ? UNKNOWN : 0) | r.known;
}

SEC("uprobe.multi/enter")
int enter(struct pt_regs *ctx)
{
	struct thread *t = this_thread();
	if (!t)
		return 0;
	__u64 sp = PT_REGS_SP(ctx), arg = PT_REGS_PARM1(ctx);
	__u64 ip = PT_REGS_IP(ctx), cookie = bpf_get_attach_cookie(ctx);
	__u32 kind = cookie, file = cookie >> 32;
	// A call below another one. But a function that is called below itself, or too many below one, show that that one was left without
	// returning (longjmp), from further up the stack.
	if (sp < t->sp && ip != t->ip && ++t->nested < NESTED)
		return 0;
	if (t->sp) {
		// One file that is known by two inodes, as the layer below two overlays is, has two probes in one place.
		if (sp == t->sp && ip == t->ip && arg == t->arg) {
			if (file != t->file)
				bpf_map_update_elem(&twins, &file, &t->file, BPF_NOEXIST);
			return 0;
		}
		struct process *p = process_of(t);
		if (p) { // never returned
			if (is_free(t->kind))
				put_back(p, t);
			add(&p->unreturned, 1);
			drop(DROP_UNRETURNED);
		}
		t->sp = 0;
	}
	__u64 size = 0, aux = 0;
	switch (kind) {
	case ALLOC:
		size = PT_REGS_PARM2(ctx);
		break;
	case MANAGED:
		size = PT_REGS_PARM2(ctx) | ANYWHERE;
		break;
	case MAP:
		aux = PT_REGS_PARM4(ctx);
		size = PT_REGS_PARM2(ctx);
		break;
	case UNMAP:
		size = PT_REGS_PARM2(ctx);
		break;
	case SHARED:
		size = HOST;
		break;
	case RETAIN:
		aux = PT_REGS_PARM2(ctx);
		break;
	case PITCH:
		size = PT_REGS_PARM4(ctx);
		aux = PT_REGS_PARM2(ctx);
		break;
	case EXTENT: {
		__u64 extent[3] = {};
#if defined(__TARGET_ARCH_x86)
		void *at = (void *)(sp + 8); // by value, on the stack
#else
		void *at = (void *)PT_REGS_PARM2(ctx); // a copy
#endif
		if (bpf_probe_read_user(extent, sizeof extent, at))
			drop(DROP_UNREADABLE);
		size = extent[1] * extent[2];
		break;
	}
	case CREATE: {
		size = PT_REGS_PARM2(ctx);
		// CUmemAllocationProp: kind, handle types, and the location: 1 is a device, others are NUMA nodes of the host.
		__u32 properties[3] = {};
		void *at = (void *)PT_REGS_PARM3(ctx);
		if (!bpf_probe_read_user(properties, sizeof properties, at) && properties[2] > 1)
			size |= HOST;
		break;
	}
	}
	t->file = file;
	t->kind = kind;
	t->ip = ip;
	t->arg = arg;
	t->size = size;
	t->aux = aux;
	t->nested = 0;
	if (kind == UNMAP) {
		struct process *p = process_of(t);
		if (!p)
			return 0;
		t->size = unmapped(p, t->id, arg, size);
	}
	if (is_free(kind)) {
		struct process *p = process_of(t);
		if (!p)
			return 0;
		t->generation = p->generation;
		// Taken now: when this call returns, another thread may have been given the address already.
		struct key k = key_of(p, t, arg);
		struct allocation *known = bpf_map_lookup_elem(&live, &k);
		t->size = known ? known->size : UNKNOWN;
		if (known && kind == RELEASE && __sync_fetch_and_add(&known->other, -1) > 1)
			t->aux = 1; // others hold it still
		else if (known && bpf_map_delete_elem(&live, &k))
			t->size = UNKNOWN; // freed twice at the same time
		else if (known)
			add(&p->entries[space_of(t)], -1);
	}
	t->sp = sp;
	return 0;
}

static __always_inline __u64 log2_bucket(__u64 size)
{
	__u64 n = 0, v = size - 1;
	if (size <= 1)
		return 0;
#pragma unroll
	for (int shift = 32; shift; shift >>= 1)
		if (v >> shift) {
			v >>= shift;
			n += shift;
		}
	n++;
	return n < SIZE_BUCKETS ? n : SIZE_BUCKETS - 1;
}

static __always_inline void allocated(struct process *p, struct thread *t)
{
	__u64 address = 0, size = t->size, pitch[2] = {};
	long err = 0;
	switch (t->kind) {
	case PITCH:
		err = bpf_probe_read_user(&pitch[1], sizeof pitch[1], (void *)t->aux);
		err |= bpf_probe_read_user(&address, sizeof address, (void *)t->arg);
		size *= pitch[1];
		break;
	case EXTENT:
		err = bpf_probe_read_user(pitch, sizeof pitch, (void *)t->arg);
		address = pitch[0];
		size *= pitch[1];
		break;
	default:
		err = bpf_probe_read_user(&address, sizeof address, (void *)t->arg);
	}
	if (err) {
		drop(DROP_UNREADABLE);
		return;
	}
	if (!address && t->kind != CREATE) // of no bytes
		return;
	__u32 space = space_of(t);
	struct key k = key_of(p, t, address);
	struct allocation fresh = {.size = size, .other = 1};
	if (!room(p) || bpf_map_update_elem(&live, &k, &fresh, BPF_NOEXIST)) {
		// There is no room, or the address is live, as far as is known: it went with its context or pool, and is given again.
		struct allocation *old = bpf_map_lookup_elem(&live, &k);
		if (!old) {
			missed(p);
			return;
		}
		__u64 was = old->size;
		*old = fresh;
		if (!(was & HOST)) {
			add(&p->released, was & BYTES);
			add(&p->held[space], -(was & BYTES));
			if (was & ANYWHERE)
				add(&p->managed, -(was & BYTES));
		}
	} else {
		add(&p->entries[space], 1);
	}
	if (size & HOST)
		return;
	__u64 bytes = size & BYTES;
	add(&p->held[space], bytes);
	if (size & ANYWHERE)
		add(&p->managed, bytes);
	add(&p->allocated, bytes);
	add(&p->allocations, 1);
	add(&p->sizes[log2_bucket(bytes)], 1);
	changed(p, t->id);
}

static __always_inline void unknown(struct process *p)
{
	add(&p->unknown_frees, 1);
	drop(DROP_UNKNOWN_FREES);
}

static __always_inline void freed(struct process *p, struct thread *t)
{
	if (t->size & UNKNOWN) {
		if (t->arg) // freeing nothing is no free
			unknown(p);
		return;
	}
	if (!t->aux && !gone(p, t))
		given_back(p, t->id, space_of(t), t->size);
}

// acquired notes that one more holds a handle. What was not created here is another process's, or of before the probes.
static __always_inline void acquired(struct process *p, struct thread *t)
{
	__u64 handle = 0;
	if (bpf_probe_read_user(&handle, sizeof handle, (void *)t->arg)) {
		drop(DROP_UNREADABLE);
		return;
	}
	struct key k = key_of(p, t, handle);
	struct allocation *known = bpf_map_lookup_elem(&live, &k), fresh = {.size = HOST, .other = 1};
	if (known)
		add(&known->other, 1);
	else if (!room(p) || bpf_map_update_elem(&live, &k, &fresh, BPF_NOEXIST))
		missed(p);
	else
		add(&p->entries[HANDLE], 1);
}

// mapped notes where a handle is mapped.
static __always_inline void mapped(struct process *p, struct thread *t)
{
	struct key k = {.address = t->arg, .id = t->id, .space = MAPPING}, h = {.address = t->aux, .id = t->id, .space = HANDLE};
	struct allocation fresh = {.size = t->size, .other = t->aux};
	struct allocation *handle = bpf_map_lookup_elem(&live, &h);
	if (!room(p) || bpf_map_update_elem(&live, &k, &fresh, BPF_NOEXIST)) {
		missed(p);
		return;
	}
	add(&p->entries[MAPPING], 1);
	if (handle)
		add(&handle->other, 1);
}

// use notes that a process uses a device. What it has without having named one is on the first.
static __always_inline void use(struct process *p, __u32 device)
{
	__u64 devices = 1ULL << (device & 63);
	if (!p->devices && p->entries[ADDRESS])
		devices |= 1;
	__sync_fetch_and_or(&p->devices, devices);
}

// reset releases what goes with a context, where there is no other one that a part of it could be in. Else it stays, and is marked.
static __always_inline void reset(struct process *p, struct thread *t)
{
	int sure = t->kind == RESET ? !p->contexts && !(p->devices & (p->devices - 1)) : p->contexts == 1 && !p->devices;
	if (t->kind == DESTROY && p->contexts)
		__sync_fetch_and_add(&p->contexts, -1);
	if (!p->entries[ADDRESS])
		return;
	if (!sure) {
		unknown(p);
		return;
	}
	__sync_fetch_and_add(&p->generation, 1);
	p->devices = 0;
	p->managed = 0;
	p->entries[ADDRESS] = 0;
	add(&p->released, __sync_lock_test_and_set(&p->held[ADDRESS], 0));
	add(&abandoned, 1);
	changed(p, t->id);
}

SEC("uretprobe.multi/leave")
int leave(struct pt_regs *ctx)
{
	struct thread *t = known_thread();
	if (!t || !t->sp || !returned(t->sp, PT_REGS_SP(ctx)))
		return 0;
	if (t->kind != (__u32)bpf_get_attach_cookie(ctx))
		return 0; // of a call that was entered before the probes came
	t->sp = 0;
	int failed = (int)PT_REGS_RC(ctx) != 0;
	struct process *p = process_of(t);
	if (!p)
		return 0;
	switch (t->kind) {
	case FREE:
	case RELEASE:
		if (failed) {
			put_back(p, t);
			add(&p->free_failures, 1);
		} else {
			freed(p, t);
		}
		return 0;
	case ACQUIRE:
		if (!failed)
			acquired(p, t);
		return 0;
	case MAP:
		if (!failed)
			mapped(p, t);
		return 0;
	case UNMAP:
		if (failed)
			add(&p->free_failures, 1);
		if (failed ? t->size & 1 : t->size & UNKNOWN) // or it is not known what is mapped still
			unknown(p);
		return 0;
	case DEVICE:
	case RETAIN:
		if (!failed)
			use(p, t->kind == DEVICE ? t->arg : t->aux);
		return 0;
	case CONTEXT:
		if (!failed)
			__sync_fetch_and_add(&p->contexts, 1);
		return 0;
	case DESTROY:
	case RESET:
		if (!failed)
			reset(p, t);
		return 0;
	}
	if (failed)
		add(&p->failures, 1);
	else
		allocated(p, t);
	return 0;
}

SEC("uprobe.multi/launch_enter")
int launch_enter(struct pt_regs *ctx)
{
	struct thread *t = this_thread();
	__u64 sp = PT_REGS_SP(ctx);
	if (!t || (sp < t->launch_sp && ++t->launch_nested < NESTED))
		return 0;
	t->launch_nested = 0;
	t->launch_sp = sp;
	t->launched = bpf_ktime_get_ns();
	return 0;
}

SEC("uretprobe.multi/launch_leave")
int launch_leave(struct pt_regs *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	struct thread *t = known_thread();
	if (!t || !t->launch_sp || !returned(t->launch_sp, PT_REGS_SP(ctx)))
		return 0;
	t->launch_sp = 0;
	if ((int)PT_REGS_RC(ctx))
		return 0;
	struct process *p = process_of(t);
	if (!p)
		return 0;
	__u64 took = now - t->launched;
	__u32 bucket = 0;
#pragma unroll
	for (int step = 128; step; step >>= 1)
		if (took > launch_bounds[(bucket + step) & 255])
			bucket += step;
	if (bucket < LAUNCH_BUCKETS)
		add(&p->launch_durations[bucket], 1);
	add(&p->launch_sum, took);
	add(&p->launches, 1);
	return 0;
}

static __always_inline void end(__u32 tgid)
{
	__u32 *known = bpf_map_lookup_elem(&identities, &tgid);
	if (!known)
		return;
	__u32 id = *known;
	bpf_map_delete_elem(&identities, &tgid);
	struct process *p = bpf_map_lookup_elem(&processes, &id);
	if (!p)
		return;
	if (p->entries[ADDRESS] || p->entries[HANDLE] || p->entries[MAPPING])
		add(&abandoned, 1);
	p->released += p->held[ADDRESS] + p->held[HANDLE];
	p->held[ADDRESS] = p->held[HANDLE] = p->managed = 0;
	p->ended = 1;
	__u64 now = bpf_ktime_get_ns();
	p->changed = now;
	if (notify)
		tell(p, id, now, 1);
}

SEC("raw_tracepoint/sched_process_exit")
int process_exit(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 tid = ids;
	bpf_map_delete_elem(&threads, &tid);
	struct task_struct *task = (void *)bpf_get_current_task();
	if (BPF_CORE_READ(task, signal, live.counter) == 0) // the last of its threads
		end(ids >> 32);
	return 0;
}

// (struct task_struct *, pid_t old, struct linux_binprm *): the thread that calls exec becomes the first one, and is alone.
SEC("raw_tracepoint/sched_process_exec")
int process_exec(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 tid = ids, old = ctx->args[1];
	bpf_map_delete_elem(&threads, &tid);
	bpf_map_delete_elem(&threads, &old);
	end(ids >> 32);
	return 0;
}
