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

/// A file that a command reads: a regular file, a pipe, a device or an open descriptor such as `/dev/stdin`.
public struct InputFile: Sendable {
  /// The path, as given by the user.
  public let path: String

  /// Names a file, without opening it.
  public init(_ path: String) { self.path = path }

  /// Reads all bytes. If the path names a FIFO, the call waits until the last process has closed it.
  ///
  /// - Parameter limit: The maximum number of bytes of any file that is not a regular one, because a device or a pipe may have no
  ///   end. A regular file may have more bytes, but no more than when it was opened.
  /// - Throws: `CacheError.Code.bodyTooLarge` above the limit, or else `CacheError.Code.fileSystem`, with the path, the reason
  ///   and the system's number.
  public func read(limit: Int = Descriptor.listLimit) throws(CacheError) -> Data {
    do throws(CacheError) {
      if case .descriptor(let descriptor) = LinkTarget(path) { return try descriptor.read(limit: limit) }
      // Without O_NOCTTY, a terminal that is opened can become the one that controls the process.
      let number = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC)
      guard number >= 0 else { throw .system(errno) }
      defer { close(number) }
      var status = stat()
      guard fstat(number, &status) == 0 else { throw .system(errno) }
      // A file of the kernel, such as one in /proc, states no size.
      let isRegular = status.st_mode & S_IFMT == S_IFREG && status.st_size > 0
      return try Descriptor(number: number).read(limit: isRegular ? max(limit, Int(status.st_size)) : limit)
    } catch {
      throw CacheError(error.code, reason: error.reason, path: path, errno: error.errno)
    }
  }

  /// Whether the path names a regular file that other users may read or write.
  ///
  /// The rule is that of ssh: if the file belongs to the user of this process, its group counts as other users.
  public var isOpenToOthers: Bool {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
    return status.st_mode & (status.st_uid == geteuid() ? 0o077 : 0o007) != 0
  }
}

/// A line of a list that people write: URLs, paths or keys.
///
/// A list is UTF-8, with a byte order mark or without one. Its lines end with LF, CRLF or CR. Blank lines and lines that begin
/// with `#` are comments.
public struct ListLine: Hashable, Sendable {
  /// The number of the line in the file, from 1.
  public var number: Int
  /// The text without the white space around it, or `nil` if the line is not UTF-8 or contains NUL.
  public var text: String?

  /// Creates a line.
  public init(number: Int, text: String?) { (self.number, self.text) = (number, text) }

  /// Returns the lines of a list, without comments.
  ///
  /// The lines of UTF-16 cannot be told apart, so a list with its byte order mark has one line, whose text is `nil`.
  public static func all(in list: Data) -> [ListLine] {
    guard !list.starts(with: [0xFF, 0xFE]), !list.starts(with: [0xFE, 0xFF]) else { return [ListLine(number: 1, text: nil)] }
    let bytes = [UInt8](list)
    let (lineFeed, carriageReturn) = (UInt8(ascii: "\n"), UInt8(ascii: "\r"))
    var lines: [ListLine] = []
    var start = 0
    var number = 0
    while start < bytes.count {
      number += 1
      let end = bytes[start...].firstIndex { $0 == lineFeed || $0 == carriageReturn } ?? bytes.count
      let line = bytes[start..<end].drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
      // A comment can be in another encoding.
      let text = line.first == UInt8(ascii: "#") ? "" : text(bytes[start..<end])
      if text.map({ !$0.isEmpty && !$0.hasPrefix("#") }) ?? true { lines.append(ListLine(number: number, text: text)) }
      start = end + (bytes[end...].starts(with: [carriageReturn, lineFeed]) ? 2 : 1)
    }
    return lines
  }

  private static func text(_ bytes: ArraySlice<UInt8>) -> String? {
    guard !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) else { return nil }
    // Each file has a mark of its own if several are joined.
    var line = Substring(text.unicodeScalars.first == "\u{FEFF}" ? text.unicodeScalars.dropFirst() : text.unicodeScalars[...])
    line = line.drop(while: \.isWhitespace)
    while line.last?.isWhitespace == true { line.removeLast() }
    return String(line)
  }
}
