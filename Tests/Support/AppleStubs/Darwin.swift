// swift-format-ignore-file: AlwaysUseLowerCamelCase

// Declarations of Darwin, Apple's C library, in the form in which Swift imports them: pointers without annotations are implicitly
// unwrapped, and results may be discarded. Nothing of Linux's C library is visible through this module. The functions that the
// program ViewTree reaches have a body.
//
// Source: the headers of the macOS 15 SDK in Apple's open sources (xnu, Libc, Libinfo), the manual pages
// of section 2 and 3, and for errno, fcntl, open, openat and S_IF… Swift's overlay (swiftlang/swift, stdlib/public/Platform).
@_exported public import DarwinTypes

// MARK: Constants

public var AF_INET: Int32 { 2 }
public var AF_INET6: Int32 { 30 }
public var AF_UNSPEC: Int32 { 0 }
public var AT_FDCWD: Int32 { -2 }
public var AT_REMOVEDIR: Int32 { 0x80 }
public var AT_SYMLINK_NOFOLLOW: Int32 { 0x20 }
public var E2BIG: Int32 { 7 }
public var EACCES: Int32 { 13 }
public var EADDRNOTAVAIL: Int32 { 49 }
public var EAGAIN: Int32 { 35 }
public var ECANCELED: Int32 { 89 }
public var ECONNABORTED: Int32 { 53 }
public var ECONNREFUSED: Int32 { 61 }
public var ECONNRESET: Int32 { 54 }
public var EDQUOT: Int32 { 69 }
public var EEXIST: Int32 { 17 }
public var EHOSTDOWN: Int32 { 64 }
public var EHOSTUNREACH: Int32 { 65 }
public var EINTR: Int32 { 4 }
public var EINVAL: Int32 { 22 }
public var EIO: Int32 { 5 }
public var EISDIR: Int32 { 21 }
public var ELOOP: Int32 { 62 }
public var EMFILE: Int32 { 24 }
public var EMLINK: Int32 { 31 }
public var ENETDOWN: Int32 { 50 }
public var ENETUNREACH: Int32 { 51 }
public var ENFILE: Int32 { 23 }
public var ENOBUFS: Int32 { 55 }
public var ENOENT: Int32 { 2 }
public var ENOMEM: Int32 { 12 }
public var ENOSPC: Int32 { 28 }
public var ENOSYS: Int32 { 78 }
public var ENOTCONN: Int32 { 57 }
public var ENOTDIR: Int32 { 20 }
public var ENOTSUP: Int32 { 45 }
public var ENXIO: Int32 { 6 }
public var EOPNOTSUPP: Int32 { 102 }
public var EPERM: Int32 { 1 }
public var EPIPE: Int32 { 32 }
public var EROFS: Int32 { 30 }
public var ETIMEDOUT: Int32 { 60 }
public var EWOULDBLOCK: Int32 { 35 }
public var FD_CLOEXEC: Int32 { 1 }
public var F_FULLFSYNC: Int32 { 51 }
public var F_GETPROTECTIONCLASS: Int32 { 63 }
public var F_SETFD: Int32 { 2 }
public var F_SETPROTECTIONCLASS: Int32 { 64 }
public var INET6_ADDRSTRLEN: Int32 { 46 }
public var LOCK_EX: Int32 { 2 }
public var LOCK_NB: Int32 { 4 }
public var LOCK_SH: Int32 { 1 }
public var LOCK_UN: Int32 { 8 }
public var O_CLOEXEC: Int32 { 0x1000000 }
public var O_CREAT: Int32 { 0x200 }
public var O_DIRECTORY: Int32 { 0x100000 }
public var O_EXCL: Int32 { 0x800 }
public var O_NOCTTY: Int32 { 0x20000 }
public var O_NOFOLLOW: Int32 { 0x100 }
public var O_NONBLOCK: Int32 { 4 }
public var O_RDONLY: Int32 { 0 }
public var O_RDWR: Int32 { 2 }
public var O_TRUNC: Int32 { 0x400 }
public var O_WRONLY: Int32 { 1 }
public var PATH_MAX: Int32 { 1024 }
public var POLLIN: Int32 { 1 }
public var POLLOUT: Int32 { 4 }
public var RLIMIT_NOFILE: Int32 { 8 }
public var SOCK_STREAM: Int32 { 1 }
public var SOL_SOCKET: Int32 { 0xFFFF }
public var SO_REUSEADDR: Int32 { 4 }
public var STDERR_FILENO: Int32 { 2 }
public var STDIN_FILENO: Int32 { 0 }
public var STDOUT_FILENO: Int32 { 1 }
public var W_OK: Int32 { 2 }
public var X_OK: Int32 { 1 }
public var _SC_NPROCESSORS_ONLN: Int32 { 58 }
public var _SC_PAGESIZE: Int32 { 29 }
public var _SC_PHYS_PAGES: Int32 { 200 }

public var S_IFMT: mode_t { 0o170000 }
public var S_IFREG: mode_t { 0o100000 }
public var S_IFDIR: mode_t { 0o040000 }
public var CLOCK_REALTIME: clockid_t { clockid_t(0) }
public var CLOCK_MONOTONIC: clockid_t { clockid_t(6) }
public var CLOCK_UPTIME_RAW: clockid_t { clockid_t(8) }
public var CLOCK_THREAD_CPUTIME_ID: clockid_t { clockid_t(16) }

// MARK: The process

nonisolated(unsafe) public var errno: Int32 = 0

public func abort() -> Never { fatalError() }
public func exit(_ status: Int32) -> Never { fatalError() }
@discardableResult public func clock_gettime(_ clock: clockid_t, _ time: UnsafeMutablePointer<timespec>!) -> Int32 {
  let (seconds, fraction) = ContinuousClock.Instant.now.duration(to: start).components
  time.pointee = timespec(tv_sec: Int(-seconds), tv_nsec: Int(-fraction / 1_000_000_000))
  return 0
}
private let start = ContinuousClock.now
@discardableResult public func geteuid() -> uid_t { fatalError() }
@discardableResult public func getegid() -> gid_t { fatalError() }
@discardableResult public func getgroups(_ count: Int32, _ groups: UnsafeMutablePointer<gid_t>!) -> Int32 { fatalError() }
@discardableResult public func getpid() -> pid_t { fatalError() }
@discardableResult public func getrlimit(_ resource: Int32, _ limit: UnsafeMutablePointer<rlimit>!) -> Int32 { fatalError() }
@discardableResult public func setrlimit(_ resource: Int32, _ limit: UnsafePointer<rlimit>!) -> Int32 { fatalError() }
@discardableResult public func isatty(_ descriptor: Int32) -> Int32 { fatalError() }
@discardableResult public func sched_yield() -> Int32 { 0 }
@discardableResult public func strerror(_ code: Int32) -> UnsafeMutablePointer<CChar>! { fatalError() }
@discardableResult public func sysconf(_ name: Int32) -> Int { name == _SC_NPROCESSORS_ONLN ? 4 : 16_384 }
@discardableResult
public func sysctlbyname(
  _ name: UnsafePointer<CChar>!, _ old: UnsafeMutableRawPointer!, _ oldSize: UnsafeMutablePointer<Int>!,
  _ new: UnsafeMutableRawPointer!, _ newSize: Int
) -> Int32 { fatalError() }
@discardableResult public func time(_ seconds: UnsafeMutablePointer<time_t>!) -> time_t { fatalError() }
@discardableResult public func usleep(_ microseconds: UInt32) -> Int32 { fatalError() }

public func cos(_ angle: Double) -> Double { fatalError() }
public func pow(_ base: Double, _ exponent: Double) -> Double { fatalError() }
public func sin(_ angle: Double) -> Double { fatalError() }

// MARK: Memory

@discardableResult public func calloc(_ count: Int, _ size: Int) -> UnsafeMutableRawPointer! {
  let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: count * size, alignment: 16)
  memory.initializeMemory(as: UInt8.self, repeating: 0)
  return memory.baseAddress
}
@discardableResult public func malloc(_ size: Int) -> UnsafeMutableRawPointer! {
  UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 16)
}
public func free(_ memory: UnsafeMutableRawPointer!) { memory?.deallocate() }
@discardableResult
public func memchr(_ memory: UnsafeRawPointer!, _ byte: Int32, _ count: Int) -> UnsafeMutableRawPointer! { fatalError() }
@discardableResult
public func memcmp(_ one: UnsafeRawPointer!, _ other: UnsafeRawPointer!, _ count: Int) -> Int32 { fatalError() }

// MARK: Files

@discardableResult public func access(_ path: UnsafePointer<CChar>!, _ mode: Int32) -> Int32 { fatalError() }
@discardableResult public func chmod(_ path: UnsafePointer<CChar>!, _ mode: mode_t) -> Int32 { fatalError() }
@discardableResult public func chown(_ path: UnsafePointer<CChar>!, _ owner: uid_t, _ group: gid_t) -> Int32 { fatalError() }
@discardableResult public func close(_ descriptor: Int32) -> Int32 { fatalError() }
@discardableResult public func closedir(_ folder: UnsafeMutablePointer<DIR>!) -> Int32 { fatalError() }
@discardableResult public func fchmod(_ descriptor: Int32, _ mode: mode_t) -> Int32 { fatalError() }
@discardableResult public func fchown(_ descriptor: Int32, _ owner: uid_t, _ group: gid_t) -> Int32 { fatalError() }
public func fcntl(_ descriptor: Int32, _ command: Int32) -> Int32 { fatalError() }
public func fcntl(_ descriptor: Int32, _ command: Int32, _ value: Int32) -> Int32 { fatalError() }
public func fcntl(_ descriptor: Int32, _ command: Int32, _ value: UnsafeMutableRawPointer) -> Int32 { fatalError() }
@discardableResult public func fdopendir(_ descriptor: Int32) -> UnsafeMutablePointer<DIR>! { fatalError() }
@discardableResult public func flock(_ descriptor: Int32, _ operation: Int32) -> Int32 { fatalError() }
@discardableResult
public func fstat(_ descriptor: Int32, _ status: UnsafeMutablePointer<DarwinTypes.stat>!) -> Int32 { fatalError() }
@discardableResult public func fstatat(
  _ folder: Int32, _ path: UnsafePointer<CChar>!, _ status: UnsafeMutablePointer<DarwinTypes.stat>!, _ flags: Int32
) -> Int32 { fatalError() }
@discardableResult public func fsync(_ descriptor: Int32) -> Int32 { fatalError() }
@discardableResult public func ftruncate(_ descriptor: Int32, _ length: off_t) -> Int32 { fatalError() }
@discardableResult public func futimens(_ descriptor: Int32, _ times: UnsafePointer<timespec>!) -> Int32 { fatalError() }
@discardableResult public func link(_ path: UnsafePointer<CChar>!, _ new: UnsafePointer<CChar>!) -> Int32 { fatalError() }
@discardableResult public func linkat(
  _ folder: Int32, _ path: UnsafePointer<CChar>!, _ newFolder: Int32, _ new: UnsafePointer<CChar>!, _ flags: Int32
) -> Int32 { fatalError() }
@discardableResult
public func lstat(_ path: UnsafePointer<CChar>!, _ status: UnsafeMutablePointer<DarwinTypes.stat>!) -> Int32 { fatalError() }
@discardableResult public func mkdir(_ path: UnsafePointer<CChar>!, _ mode: mode_t) -> Int32 { fatalError() }
public func open(_ path: UnsafePointer<CChar>, _ flags: Int32) -> Int32 { fatalError() }
public func open(_ path: UnsafePointer<CChar>, _ flags: Int32, _ mode: mode_t) -> Int32 { fatalError() }
public func openat(_ folder: Int32, _ path: UnsafePointer<CChar>, _ flags: Int32) -> Int32 { fatalError() }
public func openat(_ folder: Int32, _ path: UnsafePointer<CChar>, _ flags: Int32, _ mode: mode_t) -> Int32 { fatalError() }
@discardableResult public func pipe(_ descriptors: UnsafeMutablePointer<Int32>!) -> Int32 { fatalError() }
@discardableResult
public func poll(_ descriptors: UnsafeMutablePointer<pollfd>!, _ count: nfds_t, _ milliseconds: Int32) -> Int32 { fatalError() }
@discardableResult
public func pread(_ descriptor: Int32, _ buffer: UnsafeMutableRawPointer!, _ count: Int, _ offset: off_t) -> Int { fatalError() }
@discardableResult
public func pwrite(_ descriptor: Int32, _ buffer: UnsafeRawPointer!, _ count: Int, _ offset: off_t) -> Int { fatalError() }
@discardableResult public func read(_ descriptor: Int32, _ buffer: UnsafeMutableRawPointer!, _ count: Int) -> Int { fatalError() }
@discardableResult public func readdir(_ folder: UnsafeMutablePointer<DIR>!) -> UnsafeMutablePointer<dirent>! { fatalError() }
@discardableResult
public func readlink(_ path: UnsafePointer<CChar>!, _ buffer: UnsafeMutablePointer<CChar>!, _ size: Int) -> Int { fatalError() }
@discardableResult
public func realpath(_ path: UnsafePointer<CChar>!, _ resolved: UnsafeMutablePointer<CChar>!) -> UnsafeMutablePointer<CChar>! {
  fatalError()
}
@discardableResult public func remove(_ path: UnsafePointer<CChar>!) -> Int32 { fatalError() }
@discardableResult public func rename(_ path: UnsafePointer<CChar>!, _ new: UnsafePointer<CChar>!) -> Int32 { fatalError() }
@discardableResult public func rmdir(_ path: UnsafePointer<CChar>!) -> Int32 { fatalError() }
@discardableResult
public func stat(_ path: UnsafePointer<CChar>!, _ status: UnsafeMutablePointer<DarwinTypes.stat>!) -> Int32 { fatalError() }
@discardableResult public func unlink(_ path: UnsafePointer<CChar>!) -> Int32 { fatalError() }
@discardableResult public func unlinkat(_ folder: Int32, _ path: UnsafePointer<CChar>!, _ flags: Int32) -> Int32 { fatalError() }
@discardableResult public func write(_ descriptor: Int32, _ buffer: UnsafeRawPointer!, _ count: Int) -> Int { fatalError() }

// MARK: The network

@discardableResult
public func bind(_ socket: Int32, _ address: UnsafePointer<sockaddr>!, _ size: socklen_t) -> Int32 { fatalError() }
@discardableResult public func gai_strerror(_ code: Int32) -> UnsafePointer<CChar>! { fatalError() }
@discardableResult public func getaddrinfo(
  _ host: UnsafePointer<CChar>!, _ service: UnsafePointer<CChar>!, _ hints: UnsafePointer<addrinfo>!,
  _ result: UnsafeMutablePointer<UnsafeMutablePointer<addrinfo>?>!
) -> Int32 { fatalError() }
@discardableResult public func getsockname(
  _ socket: Int32, _ address: UnsafeMutablePointer<sockaddr>!, _ size: UnsafeMutablePointer<socklen_t>!
) -> Int32 { fatalError() }
@discardableResult public func inet_ntop(
  _ family: Int32, _ address: UnsafeRawPointer!, _ text: UnsafeMutablePointer<CChar>!, _ size: socklen_t
) -> UnsafePointer<CChar>! { fatalError() }
@discardableResult
public func inet_pton(_ family: Int32, _ text: UnsafePointer<CChar>!, _ address: UnsafeMutableRawPointer!) -> Int32 {
  fatalError()
}
@discardableResult public func setsockopt(
  _ socket: Int32, _ level: Int32, _ name: Int32, _ value: UnsafeRawPointer!, _ size: socklen_t
) -> Int32 { fatalError() }
@discardableResult public func socket(_ family: Int32, _ kind: Int32, _ protocol: Int32) -> Int32 { fatalError() }
public func freeaddrinfo(_ list: UnsafeMutablePointer<addrinfo>!) { fatalError() }
