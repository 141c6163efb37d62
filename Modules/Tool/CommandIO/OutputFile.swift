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

/// A file that a command writes. The bytes go into what the path names, as those of a shell redirection do.
///
/// - A device, a FIFO or an open descriptor (`/dev/stdout`, `/dev/fd/3`) receives the bytes.
/// - A symbolic link stays a link, and its target is written.
/// - A regular file is replaced in one step by a draft beside it, so it is never incomplete. It keeps its permissions and its
///   owner, and loses its access control list and its extended attributes. If that is impossible, the file itself is written:
///   the folder is read-only, the file has several names, or it belongs to another user.
public struct OutputFile: Sendable {
  /// The path, as given by the user.
  public let path: String

  /// Names a file, without opening it.
  public init(_ path: String) { self.path = path }

  /// Whether the path names the standard output of this process.
  public var isStandardOutput: Bool { LinkTarget(path) == .descriptor(.standardOutput) }

  /// Whether the path names no file, or a regular file that a new file of this user replaces without a trace: not a link, a file
  /// with several names, of another user or group, or without the permission to write.
  public var isReplaceable: Bool {
    guard case .path = LinkTarget(path), path.utf8.last != UInt8(ascii: "/") else { return false }
    guard access(Self.folder(of: path) ?? ".", W_OK | X_OK) == 0 else { return false }
    var named = stat()
    guard lstat(path, &named) == 0 else { return errno == ENOENT }
    return named.st_mode & S_IFMT == S_IFREG && named.st_mode & 0o7000 == 0 && named.st_nlink == 1 && named.st_uid == geteuid()
      && named.st_gid == getegid() && access(path, W_OK) == 0
  }

  /// Writes the bytes. If the path names a FIFO that no process reads, the call waits.
  ///
  /// - Throws: `CacheError.Code.fileSystem`. Its reason names the path, and its `errno` is the system's number.
  public func write(_ bytes: Data) throws(CacheError) {
    do throws(CacheError) {
      switch LinkTarget(path) {
      case .descriptor(let descriptor): try descriptor.write(bytes)
      case .path(let target):
        var named = stat()
        let exists = stat(path, &named) == 0
        guard exists || errno == ENOENT else { throw .system(errno) }
        // A file without the permission to write is not replaced either.
        if exists, named.st_mode & S_IFMT == S_IFREG, access(path, W_OK) != 0 { throw .system(errno) }
        if try replace(target, exists ? named : nil, bytes) { return }
        try overwrite(bytes, exists: exists)
      }
    } catch {
      throw CacheError(error.code, reason: "cannot write '\(path)': \(error.reason)", errno: error.errno)
    }
  }

  /// The path up to its last slash, or `nil` if it has none. As a character, a slash can be one with an accent.
  private static func folder(of path: String) -> String? {
    path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[...$0]) }
  }

  /// Whether the path names a regular file with these bytes. No other file is read.
  public func contains(_ bytes: Data) -> Bool {
    var named = stat()
    guard stat(path, &named) == 0, named.st_mode & S_IFMT == S_IFREG, named.st_size == bytes.count else { return false }
    return (try? Data(contentsOf: URL(filePath: path, directoryHint: .notDirectory))) == bytes
  }

  /// Writes a draft and moves it to the path.
  ///
  /// - Parameters:
  ///   - target: The path without links.
  ///   - named: The state of the file that is replaced, or `nil` if there is none.
  /// - Returns: `false` if the file can only be written itself. It is unchanged then.
  private func replace(_ target: String, _ named: stat?, _ bytes: Data) throws(CacheError) -> Bool {
    guard Self.canReplace(target, named) else { return false }
    let folder = Self.folder(of: target) ?? ""
    let draft = "\(folder).\(Revision.random()).draft"
    // Only the owner can read the draft before it has the permissions of the file.
    let number = opened(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, named == nil ? 0o666 : 0o600)
    guard number >= 0 else { return try Self.otherwise(errno) }
    var isMoved = false
    defer { if !isMoved { unlink(draft) } }
    do {
      var isOpen = true
      defer { if isOpen { close(number) } }
      guard Self.takeOver(named, number) else { return false }
      try Descriptor(number: number).write(bytes)
      // Writing clears the set-user-ID bit, so the permissions are set afterwards.
      if let named, fchmod(number, named.st_mode & 0o7777) != 0 { return false }
      isOpen = false
      // Some file systems report a full disk only here.
      guard close(number) == 0 else { throw .system(errno) }
    }
    guard rename(draft, target) == 0 else { return try Self.otherwise(errno) }
    isMoved = true
    return true
  }

  /// Whether a move to the path changes exactly the named file: a regular file with one name, or a file that does not exist yet.
  private static func canReplace(_ target: String, _ named: stat?) -> Bool {
    var there = stat()
    guard lstat(target, &there) == 0 else { return named == nil && errno == ENOENT }
    guard let named else { return false }
    return there.st_mode & S_IFMT == S_IFREG && there.st_nlink == 1 && there.st_dev == named.st_dev
      && there.st_ino == named.st_ino
  }

  /// Gives the owner of the replaced file to a draft.
  private static func takeOver(_ named: stat?, _ draft: Int32) -> Bool {
    guard let named else { return true }
    var own = stat()
    guard fstat(draft, &own) == 0 else { return false }
    if own.st_uid == named.st_uid, own.st_gid == named.st_gid { return true }
    return fchown(draft, named.st_uid, named.st_gid) == 0
  }

  /// The folder does not allow a draft, so the file itself is written. On a full disk, that would only destroy the old content.
  private static func otherwise(_ number: Int32) throws(CacheError) -> Bool {
    if number == ENOSPC || number == EDQUOT { throw .system(number) }
    return false
  }

  private func overwrite(_ bytes: Data, exists: Bool) throws(CacheError) {
    // With O_CREAT, Linux refuses to open another user's file or FIFO in a folder such as /tmp (fs.protected_regular).
    let number = opened(path, O_WRONLY | O_TRUNC | O_NOCTTY | O_CLOEXEC | (exists ? 0 : O_CREAT), 0o666)
    guard number >= 0 else { throw .system(errno) }
    do throws(CacheError) {
      try Descriptor(number: number).write(bytes)
    } catch {
      close(number)
      throw error
    }
    guard close(number) == 0 else { throw .system(errno) }
  }
}

private func opened(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 {
  while true {
    let number = open(path, flags, mode)
    // A signal can interrupt the wait for the reader of a FIFO.
    if number >= 0 || errno != EINTR { return number }
  }
}
