// swift-format-ignore-file: AlwaysUseLowerCamelCase, NeverUseImplicitlyUnwrappedOptionals
// Declarations of the types of Darwin, Apple's C library, with Apple's names and widths of fields. They are a module of their
// own, because Swift does not declare a structure and a function of one name ("stat") in the same module.
//
// Source: the headers of the macOS 15 SDK as Swift imports them: sys/_types, sys/stat.h, sys/time.h, sys/resource.h,
// sys/dirent.h, sys/socket.h, netinet/in.h, netdb.h, poll.h and time.h of Apple's open sources (xnu, Libc, Libinfo).

// SwiftNIO, which is compiled for Linux, has this structure in its API. It has the same fields on Apple platforms.
@_exported public import struct Glibc.linger

public typealias blkcnt_t = Int64
public typealias blksize_t = Int32
public typealias dev_t = Int32
public typealias gid_t = UInt32
public typealias in_addr_t = UInt32
public typealias in_port_t = UInt16
public typealias ino_t = UInt64
public typealias mode_t = UInt16
public typealias nfds_t = UInt32
public typealias nlink_t = UInt16
public typealias off_t = Int64
public typealias pid_t = Int32
public typealias rlim_t = UInt64
public typealias sa_family_t = UInt8
public typealias socklen_t = UInt32
public typealias time_t = Int
public typealias uid_t = UInt32

/// An enumeration in C, which Swift imports as a structure.
public struct clockid_t: Equatable, RawRepresentable, Sendable {
  public var rawValue: UInt32
  public init(_ rawValue: UInt32) { self.rawValue = rawValue }
  public init(rawValue: UInt32) { self.rawValue = rawValue }
}

public struct timespec: Sendable {
  public var tv_sec = 0
  public var tv_nsec = 0
  public init() {}
  public init(tv_sec: time_t, tv_nsec: Int) { (self.tv_sec, self.tv_nsec) = (tv_sec, tv_nsec) }
}

// MARK: Files

public struct stat: Sendable {
  public var st_dev: dev_t = 0
  public var st_mode: mode_t = 0
  public var st_nlink: nlink_t = 0
  public var st_ino: ino_t = 0
  public var st_uid: uid_t = 0
  public var st_gid: gid_t = 0
  public var st_rdev: dev_t = 0
  public var st_atimespec = timespec()
  public var st_mtimespec = timespec()
  public var st_ctimespec = timespec()
  public var st_birthtimespec = timespec()
  public var st_size: off_t = 0
  public var st_blocks: blkcnt_t = 0
  public var st_blksize: blksize_t = 0
  public var st_flags: UInt32 = 0
  public var st_gen: UInt32 = 0
  public init() {}
}

public struct flock: Sendable {
  public var l_start: off_t = 0
  public var l_len: off_t = 0
  public var l_pid: pid_t = 0
  public var l_type: Int16 = 0
  public var l_whence: Int16 = 0
  public init() {}
}

/// A directory stream. Its fields are private to the library.
public struct DIR {}

public struct dirent: Sendable {
  public var d_ino: UInt64 = 0
  public var d_seekoff: UInt64 = 0
  public var d_reclen: UInt16 = 0
  public var d_namlen: UInt16 = 0
  public var d_type: UInt8 = 0
  /// A tuple of 1024 elements on Apple platforms.
  public var d_name: (CChar, CChar, CChar, CChar) = (0, 0, 0, 0)
  public init() {}
}

// MARK: The network

public struct in_addr: Sendable {
  public var s_addr: in_addr_t = 0
  public init() {}
  public init(s_addr: in_addr_t) { self.s_addr = s_addr }
}

/// Its field is a union of three arrays.
public struct in6_addr: Sendable {
  private var words: (UInt64, UInt64) = (0, 0)
  public init() {}
}

public struct sockaddr: Sendable {
  public var sa_len: UInt8 = 0
  public var sa_family: sa_family_t = 0
  public init() {}
}

public struct sockaddr_in: Sendable {
  public var sin_len: UInt8 = 0
  public var sin_family: sa_family_t = 0
  public var sin_port: in_port_t = 0
  public var sin_addr = in_addr()
  public init() {}
}

public struct sockaddr_in6: Sendable {
  public var sin6_len: UInt8 = 0
  public var sin6_family: sa_family_t = 0
  public var sin6_port: in_port_t = 0
  public var sin6_flowinfo: UInt32 = 0
  public var sin6_addr = in6_addr()
  public var sin6_scope_id: UInt32 = 0
  public init() {}
}

public struct addrinfo {
  public var ai_flags: Int32 = 0
  public var ai_family: Int32 = 0
  public var ai_socktype: Int32 = 0
  public var ai_protocol: Int32 = 0
  public var ai_addrlen: socklen_t = 0
  public var ai_canonname: UnsafeMutablePointer<CChar>!
  public var ai_addr: UnsafeMutablePointer<sockaddr>!
  public var ai_next: UnsafeMutablePointer<addrinfo>!
  public init() {}
}

public struct pollfd: Sendable {
  public var fd: Int32 = 0
  public var events: Int16 = 0
  public var revents: Int16 = 0
  public init() {}
  public init(fd: Int32, events: Int16, revents: Int16) { (self.fd, self.events, self.revents) = (fd, events, revents) }
}

// MARK: Limits

public struct rlimit: Sendable {
  public var rlim_cur: rlim_t = 0
  public var rlim_max: rlim_t = 0
  public init() {}
  public init(rlim_cur: rlim_t, rlim_max: rlim_t) { (self.rlim_cur, self.rlim_max) = (rlim_cur, rlim_max) }
}
