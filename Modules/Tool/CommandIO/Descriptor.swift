public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// An open file descriptor, such as a standard stream.
public struct Descriptor: Hashable, Sendable {
  let number: Int32

  init(number: Int32) { self.number = number }

  /// The standard input of the process.
  public static let standardInput = Descriptor(number: STDIN_FILENO)
  /// The standard output of the process.
  public static let standardOutput = Descriptor(number: STDOUT_FILENO)
  /// The standard error of the process.
  public static let standardError = Descriptor(number: STDERR_FILENO)

  /// The maximum number of bytes of a list of URLs or paths in a pipe, which may have no end.
  public static let listLimit = 1 << 30

  /// Writes all bytes. If the descriptor is in non-blocking mode and cannot accept more, the call waits.
  ///
  /// A parent such as an event loop sets that mode for a pipe that it shares with the process.
  ///
  /// - Throws: `CacheError.Code.fileSystem` with the number and the text of the system's error, such as `EPIPE` if no process
  ///   reads the pipe any more.
  public func write(_ bytes: Data) throws(CacheError) {
    let failure = bytes.withUnsafeBytes { bytes -> Int32? in
      var done = 0
      while done < bytes.count {
        // Darwin refuses more than `Int32.max` bytes at once.
        let count = systemWrite(number, UnsafeRawBufferPointer(rebasing: bytes[done...].prefix(1 << 30)))
        if count > 0 {
          done += count
        } else if count == 0 {
          return EIO
        } else if let failure = waiting(for: POLLOUT) {
          return failure
        }
      }
      return nil
    }
    if let failure { throw .system(failure) }
  }

  /// Reads all bytes up to the end. If the descriptor is in non-blocking mode and has no bytes yet, the call waits.
  ///
  /// - Parameter limit: The maximum number of bytes. A device or a pipe may have no end.
  /// - Throws: `CacheError.Code.bodyTooLarge` above the limit, or else `CacheError.Code.fileSystem` with the number and the text
  ///   of the system's error.
  public func read(limit: Int = listLimit) throws(CacheError) -> Data {
    var bytes = Data()
    var chunk = Data(count: 64 << 10)
    while true {
      let count = chunk.withUnsafeMutableBytes { systemRead(number, $0) }
      if count == 0 { return bytes }
      if count < 0 {
        if let failure = waiting(for: POLLIN) { throw .system(failure) }
        continue
      }
      guard bytes.count + count <= limit else {
        throw CacheError(.bodyTooLarge, reason: "more than \(limit) bytes")
      }
      bytes.append(chunk.prefix(count))
    }
  }

  /// Waits if the last call failed only because the descriptor was not ready. Returns the number of any other error.
  private func waiting(for event: Int32) -> Int32? {
    let failure = errno
    if failure == EINTR { return nil }
    guard failure == EAGAIN else { return failure }
    var entry = pollfd(fd: number, events: Int16(event), revents: 0)
    // If poll fails, or reports an error of the descriptor, the next call returns that error.
    _ = poll(&entry, 1, -1)
    return nil
  }
}

extension CacheError {
  static func system(_ number: Int32) -> CacheError {
    CacheError(.fileSystem, reason: String(cString: strerror(number)), errno: number)
  }
}

// Outside the type, where the names mean the system's functions and not the members.
private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
  write(descriptor, bytes.baseAddress, bytes.count)
}

private func systemRead(_ descriptor: Int32, _ bytes: UnsafeMutableRawBufferPointer) -> Int {
  read(descriptor, bytes.baseAddress, bytes.count)
}

/// The end of the symbolic links of a path.
enum LinkTarget: Equatable {
  /// An open descriptor of this process, named by `/dev/stdout`, `/dev/fd/3` or `/proc/self/fd/3`.
  ///
  /// The descriptor is used as it is. If the path were opened again, Linux would start at the beginning of a file, would refuse a
  /// socket, and would check the permissions of a pipe that another user has made.
  case descriptor(Descriptor)
  /// A path whose last part is not a link. There may be no file with this name.
  case path(String)

  init(_ path: String) {
    var path = path
    // The limit is that of Linux. After it, the path is a link, which a caller that opens it gets as ELOOP.
    for _ in 0..<40 {
      guard !path.hasSuffix("/") else { break }
      let slash = path.lastIndex(of: "/")
      let name = slash.map { String(path[path.index(after: $0)...]) } ?? path
      let parent = slash.map { path[...$0] } ?? "."
      // If the folder does not exist, opening the path reports that.
      let folder = Self.realPath(String(parent)) ?? String(parent)
      if let number = Int32(name), number >= 0, Self.isDescriptorFolder(folder) {
        self = .descriptor(Descriptor(number: number))
        return
      }
      path = folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)"
      guard let target = Self.linkTarget(path) else { break }
      path = target.hasPrefix("/") ? target : "\(folder)/\(target)"
    }
    self = .path(path)
  }

  private static func isDescriptorFolder(_ folder: String) -> Bool {
    if folder == "/dev/fd" { return true }
    guard folder.hasSuffix("/fd"), let process = realPath("/proc/self") else { return false }
    return folder.hasPrefix("\(process)/")
  }

  private static func realPath(_ path: String) -> String? {
    guard let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    return String(validatingCString: resolved)
  }

  /// Returns the target of a link, or `nil` if the path is not a link or its target is not UTF-8.
  private static func linkTarget(_ path: String) -> String? {
    var bytes = Data(count: Int(PATH_MAX))
    let count = bytes.withUnsafeMutableBytes { bytes in
      bytes.withMemoryRebound(to: CChar.self) { text in text.baseAddress.map { readlink(path, $0, text.count) } ?? 0 }
    }
    return count > 0 ? String(validating: bytes.prefix(count), as: UTF8.self) : nil
  }
}
