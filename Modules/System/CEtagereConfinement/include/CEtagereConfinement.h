#ifndef CETAGERE_CONFINEMENT_H
#define CETAGERE_CONFINEMENT_H

#if defined(__linux__)

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/// Starts a program with one end of a socket as its standard input and one end of a pipe as its standard error. The child has a
/// process group of its own and no blocked or ignored signals. In the background, it runs only when no other thread wants to.
///
/// Returns 0 and the ends of the parent, which do not block, or an error number.
int etagere_worker_start(
    const char *path, char *const arguments[], char *const environment[], bool in_background, pid_t *process, int *channel,
    int *messages);

/// Returns the processor time that a process has used, in nanoseconds, or 0 if it has ended.
uint64_t etagere_worker_processor_time(pid_t process);

/// Returns the longest time that a thread of a process has waited for a processor, in nanoseconds, or 0 if the kernel does not
/// count it.
uint64_t etagere_worker_waiting_time(pid_t process);

/// Ends a process of the caller that the caller has not waited for. Returns 0 or an error number.
int etagere_worker_kill(pid_t process);

/// Makes all threads of a worker run only while no other thread wants a processor.
void etagere_worker_run_in_background(pid_t process);

/// Gives all threads of a worker the lowest priority.
void etagere_worker_lower_priority(pid_t process);

/// The parts of the confinement that the kernel has put in place.
struct etagere_confinement {
  /// The version of Landlock's interface, or 0 if files and networks are not restricted by it.
  int landlock;
  /// Whether the filter of system calls is installed.
  bool has_filter;
};

/// Whether the calling process has one thread, which the confinement needs.
bool etagere_worker_has_one_thread(void);

/// Hides the memory and the environment of the calling process from other processes of the same user.
void etagere_hide_process(void);

/// Confines the calling process, which must have one thread. Nothing undoes it.
///
/// The process can read what is below `readable`. It cannot write or create files, use networks, start processes,
/// send signals to or read other processes, dump core, or gain privileges.
///
/// - Parameter readable: The readable folders and files, ended by NULL. Those that do not exist are left out.
struct etagere_confinement etagere_worker_confine(const char *const readable[]);

/// Closes all descriptors except the first three.
void etagere_worker_close_descriptors(void);

/// Limits the address space to what the process uses now and `bytes` more. If a signal ends the process when less than an eighth of
/// them is left, it writes `out of memory` to standard error first. Returns 0 or an error number.
int etagere_worker_limit_memory(uint64_t bytes);

/// Limits the processor time to what the process has used and `seconds` more. The kernel ends the process beyond it.
void etagere_worker_limit_time(uint64_t seconds);

/// Starts a thread that ends the process when the other end of a socket is closed. Returns 0 or an error number.
int etagere_worker_end_with(int channel);

/// The resident memory of the process in bytes, or 0 if the system does not state it.
uint64_t etagere_worker_resident_memory(void);

/// Returns memory that is not in use to the system.
void etagere_worker_release_memory(void);

#endif
#endif
