#if canImport(Darwin)
private import Darwin
#elseif canImport(Glibc)
private import Glibc
#elseif canImport(Musl)
private import Musl
#endif

/// The resources of the machine.
enum HostResources {
  /// The memory in bytes, or `nil` if the system does not report it.
  static var memory: Int? {
    let pages = sysconf(Int32(_SC_PHYS_PAGES))
    let size = sysconf(Int32(_SC_PAGESIZE))
    return pages > 0 && size > 0 ? pages * size : nil
  }

  /// The number of active processors, at least one.
  static let processors = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))

  /// Lets another thread run, because a thread that holds a lock may have been preempted.
  static func yield() { sched_yield() }
}
