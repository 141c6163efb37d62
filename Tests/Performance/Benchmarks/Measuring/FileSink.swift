import CacheCore
import Foundation

/// A file that is written in chunks with `write(2)`, as a program without this package would do it.
final class FileSink: Sendable {
  private let descriptor: Lock<Int32>

  /// Creates an empty file, or empties an existing one.
  init(_ file: URL) throws {
    let descriptor = open(file.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw BenchmarkFailure("cannot write '\(file.path)': errno \(errno)") }
    self.descriptor = Lock(descriptor)
  }

  func append(_ bytes: UnsafeRawBufferPointer) throws {
    try descriptor.withLock { descriptor in
      var rest = bytes
      while !rest.isEmpty {
        let written = write(descriptor, rest.baseAddress, rest.count)
        guard written > 0 else { throw BenchmarkFailure("cannot write: errno \(errno)") }
        rest = UnsafeRawBufferPointer(rebasing: rest[written...])
      }
    }
  }

  func finish() {
    descriptor.withLock { descriptor in
      if descriptor >= 0 { _ = close(descriptor) }
      descriptor = -1
    }
  }

  deinit { finish() }
}
