#if canImport(Darwin)
private import Darwin
#elseif canImport(Glibc)
private import Glibc
#elseif canImport(Musl)
private import Musl
#endif

/// What the machine has.
enum HostResources {
  /// Bytes of memory; nil when the system does not tell.
  static var memory: Int? {
    let pages = sysconf(Int32(_SC_PHYS_PAGES))
    let size = sysconf(Int32(_SC_PAGESIZE))
    return pages > 0 && size > 0 ? pages * size : nil
  }

  /// Processors that are on, at least one.
  static let processors = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))

  /// Lets another thread run: whoever holds a lock may have been interrupted.
  static func yield() { sched_yield() }
}
