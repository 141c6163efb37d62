#if Thumbnails
import Etagere
import Foundation

/// An output file that is never incomplete: its bytes are written to a draft, which is then renamed.
struct OutputFile {
  let path: String

  init(_ url: URL) { path = url.path(percentEncoded: false) }

  static func makeFolder(_ url: URL) throws(CacheError) {
    do {
      try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    } catch {
      throw CacheError(
        .fileSystem, reason: "cannot create the folder: \(error.localizedDescription)", path: url.path(percentEncoded: false),
        underlying: error)
    }
  }

  /// The bytes of the file, or `nil` if it does not exist.
  var contents: Data? { FileManager.default.contents(atPath: path) }

  func write(_ bytes: Data) throws(CacheError) {
    let folder = URL(filePath: path).deletingLastPathComponent()
    try Self.makeFolder(folder)
    let draft = folder.appending(path: ".\(Revision.random()).draft", directoryHint: .notDirectory).path(percentEncoded: false)
    let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw failure("cannot write the file") }
    var isDone = Self.write(bytes, descriptor)
    var number = errno
    if close(descriptor) != 0 || isDone && rename(draft, path) != 0 { (isDone, number) = (false, errno) }
    guard !isDone else { return }
    unlink(draft)
    errno = number
    throw failure("cannot write the file")
  }

  private static func write(_ bytes: Data, _ descriptor: Int32) -> Bool {
    bytes.withUnsafeBytes { bytes in
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = Foundation.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return false }
        rest = rest.dropFirst(count)
      }
      return true
    }
  }

  private func failure(_ what: String) -> CacheError {
    let number = errno
    return CacheError(.fileSystem, reason: "\(what): \(String(cString: strerror(number)))", path: path, errno: number)
  }
}
#endif
