#if Server
#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#elseif canImport(Glibc)
import Glibc
#endif

/// The limit of open descriptors of this process (`RLIMIT_NOFILE`). Connections to clients share it with files and with
/// connections to origins.
public enum DescriptorLimit {
  /// Raises the soft limit to the hard one, and returns the limit that holds then.
  ///
  /// A usual soft limit is 1,024, for programs that use `select`. The hard limit is the one that the operator has set.
  public static func raise() -> Int {
    var limit = current
    // Darwin has a hard limit without an end, but accepts only OPEN_MAX (10,240) on some versions.
    for soft in [limit.rlim_max, min(limit.rlim_max, 10_240)] where soft > limit.rlim_cur {
      limit.rlim_cur = soft
      if setrlimit(resource, &limit) == 0 { break }
      limit = current
    }
    return Int(clamping: current.rlim_cur)
  }

  /// Returns the number of client connections that leave enough descriptors for everything else.
  ///
  /// - Parameters:
  ///   - limit: The limit of descriptors.
  ///   - wanted: The number of connections if the limit allows it.
  ///   - reserved: The descriptors for connections to origins, for logs and for the files of a store. At most half of the limit
  ///     is reserved.
  ///   - each: The descriptors of a connection: 1, or 2 if its response can be read from a file.
  public static func connections(within limit: Int, wanted: Int, reserved: Int, each: Int) -> Int {
    max(1, min(wanted, (limit - min(reserved, limit / 2)) / each))
  }

  private static var current: rlimit {
    var limit = rlimit()
    return getrlimit(resource, &limit) == 0 ? limit : rlimit(rlim_cur: 256, rlim_max: 256)
  }

  #if canImport(Glibc)
  private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  #else
  private static let resource = RLIMIT_NOFILE
  #endif
}
#endif
