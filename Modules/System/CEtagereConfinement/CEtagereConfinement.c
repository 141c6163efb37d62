#define _GNU_SOURCE
#include "CEtagereConfinement.h"

#if defined(__linux__)

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

// MARK: Starting

// Other threads preempt one with this policy at once. They preempt one with a low priority only after its time slice.
static void run_in_background(pid_t thread) {
  struct sched_param parameters = {0};
  sched_setscheduler(thread, SCHED_IDLE, &parameters);
}

int etagere_worker_start(
    const char *path, char *const arguments[], char *const environment[], bool in_background, pid_t *process, int *channel,
    int *messages) {
  int ends[2], pipe_ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno;
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
    int error = errno;
    close(ends[0]);
    close(ends[1]);
    return error;
  }
  // Descriptors 0 to 2 would be replaced by the actions below.
  int *const all_ends[] = {&ends[0], &ends[1], &pipe_ends[0], &pipe_ends[1]};
  for (int i = 0; i < 4; i++) {
    if (*all_ends[i] > 2) continue;
    int moved = fcntl(*all_ends[i], F_DUPFD_CLOEXEC, 3);
    if (moved < 0) continue;
    close(*all_ends[i]);
    *all_ends[i] = moved;
  }
  // A source of megabytes passes with fewer changes between the two processes. The kernel has its own maximum.
  int size = 1 << 20;
  for (int i = 0; i < 2; i++) setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // Signals of a terminal do not reach a process group of its own. In a session of its own, the worker would get the same share
  // of the processors as the service, whatever its priority is (sched_autogroup).
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  int error = posix_spawn(process, path, &actions, &attributes, arguments, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  close(pipe_ends[1]);
  if (error != 0) {
    close(ends[0]);
    close(pipe_ends[0]);
    return error;
  }
  // From the start, which takes as long as several images.
  if (in_background) run_in_background(*process);
  *channel = ends[0];
  *messages = pipe_ends[0];
  return 0;
}

uint64_t etagere_worker_processor_time(pid_t process) {
  clockid_t clock;
  struct timespec time;
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

uint64_t etagere_worker_waiting_time(pid_t process) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/task", (int)process);
  DIR *threads = opendir(path);
  if (threads == NULL) return 0;
  unsigned long long longest = 0;
  for (struct dirent *entry; (entry = readdir(threads)) != NULL;) {
    char file[64];
    unsigned long long running, waiting;
    snprintf(file, sizeof file, "/proc/%d/task/%d/schedstat", (int)process, atoi(entry->d_name));
    FILE *stream = fopen(file, "re");
    if (stream == NULL) continue;
    if (fscanf(stream, "%llu %llu", &running, &waiting) == 2 && waiting > longest) longest = waiting;
    fclose(stream);
  }
  closedir(threads);
  return longest;
}

int etagere_worker_kill(pid_t process) { return kill(process, SIGKILL) == 0 ? 0 : errno; }

void etagere_worker_run_in_background(pid_t process) {
  run_in_background(process);
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/task", (int)process);
  DIR *threads = opendir(path);
  if (threads == NULL) return;
  for (struct dirent *entry; (entry = readdir(threads)) != NULL;) {
    pid_t thread = (pid_t)atoi(entry->d_name);
    if (thread > 0) run_in_background(thread);
  }
  closedir(threads);
}

void etagere_worker_lower_priority(pid_t process) {
  // A priority is that of one thread, and the process group of a worker has all of its threads.
  setpriority(PRIO_PGRP, (id_t)process, 19);
  etagere_worker_run_in_background(process);
}

void etagere_worker_close_descriptors(void) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, 3U, ~0U, 0U) == 0) return;
#endif
  struct rlimit limit;
  int count = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536 ? (int)limit.rlim_cur : 65536;
  for (int descriptor = 3; descriptor < count; descriptor++) close(descriptor);
}

// MARK: Landlock

// The interface of the kernel (Linux 5.13), which the headers of older systems do not declare.
struct landlock_rules {
  uint64_t files;
  uint64_t networks;
  uint64_t scopes;
};

struct landlock_path {
  uint64_t allowed;
  int32_t parent;
} __attribute__((packed));

enum {
  landlock_create_ruleset = 444,
  landlock_add_rule = 445,
  landlock_restrict_self = 446,
  landlock_read_file = 1 << 2,
  landlock_read_folder = 1 << 3,
};

static int restrict_files(const char *const readable[]) {
  long version = syscall(landlock_create_ruleset, NULL, 0, 1);
  if (version < 1) return 0;
  // Each version added rights. What is named here and not allowed below is refused.
  static const int rights[] = {13, 14, 15, 15, 16};
  int last = version > 5 ? 5 : (int)version;
  struct landlock_rules rules = {.files = (1ULL << rights[last - 1]) - 1};
  if (version >= 4) rules.networks = 3;  // binding and connecting TCP sockets
  if (version >= 6) rules.scopes = 3;    // abstract sockets and signals of processes outside
  size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  int ruleset = (int)syscall(landlock_create_ruleset, &rules, size, 0);
  if (ruleset < 0) return 0;
  for (; *readable; readable++) {
    int descriptor = open(*readable, O_PATH | O_CLOEXEC);
    if (descriptor < 0) continue;
    struct landlock_path path = {.allowed = landlock_read_file | landlock_read_folder, .parent = descriptor};
    // A file has no rights of folders.
    if (syscall(landlock_add_rule, ruleset, 1, &path, 0) != 0) {
      path.allowed = landlock_read_file;
      syscall(landlock_add_rule, ruleset, 1, &path, 0);
    }
    close(descriptor);
  }
  long status = syscall(landlock_restrict_self, ruleset, 0);
  close(ruleset);
  return status == 0 ? (int)version : 0;
}

// MARK: The filter of system calls

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE

#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

// The calls that no codec needs. A list of allowed calls would depend on the versions of the C library and of all codecs.
static const unsigned refused[] = {
    SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4,
    SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg,
    SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev,
    SYS_kill, SYS_tkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
    434 /* pidfd_open */, 438 /* pidfd_getfd */, 424 /* pidfd_send_signal */,
    // These change or read other processes of the same user.
    SYS_setpriority, SYS_ioprio_set, SYS_sched_setaffinity, SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr,
    SYS_migrate_pages, SYS_move_pages, SYS_kcmp, 440 /* process_madvise */, 448 /* process_mrelease */,
    // Landlock does not restrict changes of permissions, times and attributes.
    SYS_fchmod, SYS_fchown, SYS_utimensat, 452 /* fchmodat2 */, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, 463 /* setxattrat */,
    SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, 466 /* removexattrat */, SYS_fallocate,
#ifdef SYS_renameat
    SYS_renameat,
#endif
    SYS_unlinkat, SYS_renameat2, SYS_mkdirat, SYS_mknodat, SYS_symlinkat, SYS_linkat, SYS_fchmodat, SYS_fchownat, SYS_truncate,
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns, SYS_personality,
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_keyctl, SYS_add_key, SYS_request_key,
    425 /* io_uring_setup */, 426 /* io_uring_enter */, 427 /* io_uring_register */,
    SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_swapoff,
    SYS_sethostname, SYS_setdomainname, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_acct, SYS_quotactl,
    SYS_shmget, SYS_shmat, SYS_shmctl, SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_semget, SYS_semop, SYS_semctl,
    SYS_semtimedop, SYS_mq_open, SYS_mq_unlink,
#ifdef __x86_64__
    SYS_fork, SYS_vfork, SYS_creat, SYS_unlink, SYS_rename, SYS_mkdir, SYS_rmdir, SYS_mknod, SYS_symlink,
    SYS_link, SYS_chmod, SYS_chown, SYS_lchown, SYS_modify_ldt, SYS_iopl, SYS_ioperm, SYS_utime, SYS_utimes, SYS_futimesat,
#endif
};

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, member))
// Half of an argument: the lower one on the two architectures above.
#define LOAD_ARGUMENT(index) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, args) + 8 * (index)))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, action)
#define REFUSE(error) RETURN(SECCOMP_RET_ERRNO | (error))
#define WRITING (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

static bool filter_calls(void) {
  enum { others = 80, count = sizeof refused / sizeof *refused };
  struct sock_filter filter[others + 2 * count];
  unsigned short length = 0;
#define ADD(...) filter[length++] = (struct sock_filter)__VA_ARGS__
  ADD(LOAD(arch));
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
  ADD(RETURN(SECCOMP_RET_KILL_PROCESS));
  ADD(LOAD(nr));
#ifdef __x86_64__
  // The calls of the x32 interface have other numbers.
  ADD(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
  ADD(REFUSE(ENOSYS));
#endif
  for (size_t i = 0; i < count; i++) {
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused[i], 0, 1));
    ADD(REFUSE(EPERM));
  }
  // The arguments of these calls are in memory, which a filter cannot read. Callers fall back to the older calls.
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1));
  ADD(REFUSE(ENOSYS));
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1));
  ADD(REFUSE(ENOSYS));
  // Threads are allowed, processes are not.
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
  ADD(LOAD_ARGUMENT(0));
  ADD(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0));
  ADD(REFUSE(EPERM));
  ADD(RETURN(SECCOMP_RET_ALLOW));
  // Files are only read. Where the kernel has no Landlock, this holds alone.
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 4));
  ADD(LOAD_ARGUMENT(2));
  ADD(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, WRITING, 0, 1));
  ADD(REFUSE(EACCES));
  ADD(RETURN(SECCOMP_RET_ALLOW));
#ifdef __x86_64__
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 0, 4));
  ADD(LOAD_ARGUMENT(1));
  ADD(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, WRITING, 0, 1));
  ADD(REFUSE(EACCES));
  ADD(RETURN(SECCOMP_RET_ALLOW));
#endif
  // abort() sends a signal to its own thread. A worker must not stop itself, because a stopped process outlives the service.
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 6));
  ADD(LOAD_ARGUMENT(0));
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)getpid(), 0, 2));
  ADD(LOAD_ARGUMENT(2));
  ADD(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SIGSEGV, 0, 1));
  ADD(REFUSE(EPERM));
  ADD(RETURN(SECCOMP_RET_ALLOW));
  // The kernel sends any signal to the owner of a descriptor.
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 6));
  ADD(LOAD_ARGUMENT(1));
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 8 /* F_SETOWN */, 2, 0));
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 10 /* F_SETSIG */, 1, 0));
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 15 /* F_SETOWN_EX */, 0, 1));
  ADD(REFUSE(EPERM));
  ADD(RETURN(SECCOMP_RET_ALLOW));
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 6));
  ADD(LOAD_ARGUMENT(1));
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x8901 /* FIOSETOWN */, 2, 0));
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x8902 /* SIOCSPGRP */, 1, 0));
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x5412 /* TIOCSTI */, 0, 1));
  ADD(REFUSE(EPERM));
  ADD(RETURN(SECCOMP_RET_ALLOW));
  // The limits of the process itself.
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 4));
  ADD(LOAD_ARGUMENT(0));
  ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0));
  ADD(REFUSE(EPERM));
  ADD(RETURN(SECCOMP_RET_ALLOW));
  ADD(RETURN(SECCOMP_RET_ALLOW));
#undef ADD
  struct sock_fprog program = {.len = length, .filter = filter};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

#else

static bool filter_calls(void) { return false; }

#endif

// MARK: Limits

// The file is open from before the confinement, because the kernel can forget the rule for a file of /proc. Reading it allocates
// no memory, and is allowed in a handler of signals.
static int memory_file = -1;

// Returns a number of bytes: of the address space (column 0) or of the resident memory (column 1).
static uint64_t memory_in_use(int column) {
  char text[64] = {0};
  if (memory_file < 0 || pread(memory_file, text, sizeof text - 1, 0) <= 0) return 0;
  uint64_t pages = 0;
  const char *digit = text;
  for (; column > 0 && *digit; digit++)
    if (*digit == ' ') column--;
  for (; *digit >= '0' && *digit <= '9'; digit++) pages = pages * 10 + (uint64_t)(*digit - '0');
  return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void limit(int resource, rlim_t value) {
  struct rlimit known;
  if (getrlimit(resource, &known) != 0) return;
  if (known.rlim_max != RLIM_INFINITY && known.rlim_max < value) value = known.rlim_max;
  struct rlimit changed = {.rlim_cur = value, .rlim_max = value};
  setrlimit(resource, &changed);
}

bool etagere_worker_has_one_thread(void) {
  DIR *folder = opendir("/proc/self/task");
  if (!folder) return false;
  int count = 0;
  for (const struct dirent *entry; (entry = readdir(folder));)
    if (entry->d_name[0] != '.') count++;
  closedir(folder);
  return count == 1;
}

void etagere_hide_process(void) { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

struct etagere_confinement etagere_worker_confine(const char *const readable[]) {
  // The path of the program says nothing.
  prctl(PR_SET_NAME, "etagere-codec", 0, 0, 0);
  // If the machine has no memory left, the kernel ends a worker and not the service.
  int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0) {
    ssize_t written = write(score, "1000", 4);
    (void)written;
    close(score);
  }
  memory_file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  // A write beyond the limit of zero bytes fails instead of ending the process.
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_NOFILE, 128);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  // A process of root could raise its limits again.
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct capabilities[2];
  memset(capabilities, 0, sizeof capabilities);
  syscall(SYS_capset, &header, capabilities);
  struct etagere_confinement made = {0, false};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return made;
  made.landlock = restrict_files(readable);
  made.has_filter = filter_calls();
  return made;
}

uint64_t etagere_worker_resident_memory(void) { return memory_in_use(1); }

void etagere_worker_release_memory(void) {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

// The limit of the address space, for the handler of signals.
static uint64_t memory_limit, memory_spare;

// Only functions that are safe in a handler of signals.
static void report_memory(int number) {
  if (memory_in_use(0) + memory_spare >= memory_limit) {
    static const char message[] = "\nout of memory\n";
    ssize_t written = write(2, message, sizeof message - 1);
    (void)written;
  }
  // The handler is reset, so this ends the process.
  raise(number);
}

static void report_memory_at_the_end(uint64_t limit, uint64_t bytes) {
  memory_limit = limit;
  memory_spare = bytes / 8;
  // A stack that has overflowed is of no use to the handler.
  static char space[64 << 10];
  stack_t stack = {.ss_sp = space, .ss_size = sizeof space};
  sigaltstack(&stack, NULL);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = report_memory;
  action.sa_flags = SA_ONSTACK | SA_RESETHAND;
  static const int numbers[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaction(numbers[i], &action, NULL);
}

int etagere_worker_limit_memory(uint64_t bytes) {
  uint64_t used = memory_in_use(0);
  if (used == 0) return ENOENT;
  uint64_t most = bytes > UINT64_MAX - used ? UINT64_MAX : used + bytes;
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0) return errno;
  limit.rlim_cur = most;
  if (limit.rlim_max == RLIM_INFINITY || most < limit.rlim_max) limit.rlim_max = most;
  if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_AS, &limit) != 0) return errno;
  report_memory_at_the_end(limit.rlim_cur, bytes);
  return 0;
}

void etagere_worker_limit_time(uint64_t seconds) {
  struct rusage usage;
  struct rlimit limit;
  if (getrusage(RUSAGE_SELF, &usage) != 0 || getrlimit(RLIMIT_CPU, &limit) != 0) return;
  rlim_t most = (rlim_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + seconds + 2;
  limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
  setrlimit(RLIMIT_CPU, &limit);
}

// MARK: The end of the service

static void *watch(void *argument) {
  struct pollfd watched = {.fd = (int)(intptr_t)argument, .events = POLLRDHUP};
  for (;;)
    if (poll(&watched, 1, -1) > 0 && (watched.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL))) _exit(0);
}

int etagere_worker_end_with(int channel) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread;
  int error = pthread_create(&thread, &attributes, watch, (void *)(intptr_t)channel);
  pthread_attr_destroy(&attributes);
  return error;
}

#else

// A translation unit must not be empty.
typedef int etagere_confinement_unused;

#endif
