import Foundation

/// The system calls that a disk store needs at least. They are the limit that it is compared with.
enum RawFile {
  /// Reads a file with `open`, `fstat`, `read` into new memory, and `close`.
  ///
  /// - Returns: The number of bytes.
  static func read(_ path: String) throws -> Int {
    let descriptor = try opened(path, O_RDONLY)
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure("fstat", path) }
    let memory = UnsafeMutableRawPointer.allocate(byteCount: max(1, Int(status.st_size)), alignment: 16)
    defer { memory.deallocate() }
    return Foundation.read(descriptor, memory, Int(status.st_size))
  }

  /// Writes a file with `open`, `write`, optionally `fsync`, `close`, and `rename`.
  static func write(_ bytes: Data, _ path: String, draft: String, flushes: Bool) throws {
    let descriptor = try opened(draft, O_RDWR | O_CREAT | O_EXCL)
    defer { close(descriptor) }
    let count = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
    guard count == bytes.count else { throw failure("write", draft) }
    if flushes, fsync(descriptor) != 0 { throw failure("fsync", draft) }
    guard rename(draft, path) == 0 else { throw failure("rename", path) }
  }

  /// Appends to a file with `open`, `pwrite`, and `close`.
  static func append(_ bytes: Data, _ path: String, at offset: Int) throws {
    let descriptor = try opened(path, O_RDWR)
    defer { close(descriptor) }
    let count = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(offset)) }
    guard count == bytes.count else { throw failure("pwrite", path) }
  }

  /// Returns whether a file exists, by `stat`.
  static func exists(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0
  }

  /// Removes a file with `unlink`.
  static func remove(_ path: String) throws {
    guard unlink(path) == 0 else { throw failure("unlink", path) }
  }

  /// Lists the files in a folder's subfolders with `readdir` and `stat`.
  ///
  /// - Returns: The number of files and their total size in bytes.
  static func list(_ folder: String) throws -> (count: Int, size: Int) {
    var found = (count: 0, size: 0)
    for shard in try names(folder) {
      for name in try names("\(folder)/\(shard)") {
        var status = stat()
        guard stat("\(folder)/\(shard)/\(name)", &status) == 0 else { continue }
        found = (found.count + 1, found.size + Int(status.st_size))
      }
    }
    return found
  }

  private static func names(_ folder: String) throws -> [String] {
    guard let stream = opendir(folder) else { throw failure("opendir", folder) }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if !name.hasPrefix(".") { names.append(name) }
    }
    return names
  }

  private static func opened(_ path: String, _ flags: Int32) throws -> Int32 {
    let descriptor = open(path, flags | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("open", path) }
    return descriptor
  }

  private static func failure(_ call: String, _ path: String) -> BenchmarkFailure {
    BenchmarkFailure("\(call) \(path): \(String(cString: strerror(errno)))")
  }
}
