#if canImport(Darwin)
private import Darwin
#elseif canImport(Glibc)
private import Glibc
#elseif canImport(Musl)
private import Musl
#endif

#if canImport(os) && !os(macOS) && !targetEnvironment(macCatalyst)
private import os
#endif

/// The resources of the machine, and of the process.
package enum HostResources {
  /// The memory in bytes, or `nil` if the system does not report it.
  package static var memory: Int? {
    let pages = sysconf(Int32(_SC_PHYS_PAGES))
    let size = sysconf(Int32(_SC_PAGESIZE))
    guard pages > 0, size > 0 else { return nil }
    let (bytes, overflow) = pages.multipliedReportingOverflow(by: size)
    return overflow ? .max : bytes
  }

  /// The memory in bytes that the process may still use, or `nil` if the system states no limit. iOS ends a process that uses
  /// more, without a warning. An extension may use 30 to 120 MB.
  package static var available: Int? {
    if let availableInTests { return availableInTests }
    #if canImport(os) && !os(macOS) && !targetEnvironment(macCatalyst)
    return hasLimit.withLock { available(reported: os_proc_available_memory(), hasLimit: &$0) }
    #else
    return nil
    #endif
  }

  /// The value of ``available`` in a test.
  @TaskLocal package static var availableInTests: Int?

  private static let hasLimit = Lock(false)

  /// A system without a limit reports zero, and so does one whose limit is reached.
  package static func available(reported: Int, hasLimit: inout Bool) -> Int? {
    if reported > 0 { hasLimit = true }
    return hasLimit ? max(reported, 0) : nil
  }

  /// Returns a limit for one use of memory: a fifth of the memory that the process may use, at most `most` bytes.
  package static func share(atMost most: Int) -> Int { share(atMost: most, memory: memory, available: available) }

  package static func share(atMost most: Int, memory: Int?, available: Int?) -> Int {
    // Nothing is available to a process that is about to be ended. That says nothing about a process of its kind.
    let usable = available.map { $0 > 0 ? $0 : .max } ?? .max
    return min(most, min(memory ?? 1 << 30, usable) / 5)
  }

  /// The number of active processors, at least one.
  package static let processors = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))

  /// Lets another thread run, because a thread that holds a lock may have been preempted.
  package static func yield() { sched_yield() }
}
