#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// System calls on paths that need no seam. None follows a link in the last place, and none leaves the store's folder but
/// `makeFolders`.
enum Paths {
  /// Makes one folder; true when it was not there before.
  @discardableResult
  static func makeFolder(_ path: String) throws(SystemError) -> Bool {
    if mkdir(path, 0o700) == 0 { return true }
    let error = SystemError.last
    guard error == .exists else { throw error }
    // A link to a folder would lead outside.
    guard try FileStatus(path: path).kind == .folder else { throw .notAFolder }
    return false
  }

  /// Makes a folder and those above it; links on the way are the caller's choice and are followed.
  ///
  /// - Returns: how many were made.
  @discardableResult
  static func makeFolders(_ path: String) throws(SystemError) -> Int {
    if mkdir(path, 0o700) == 0 { return 1 }
    let error = SystemError.last
    if error == .exists {
      var status = stat()
      guard stat(path, &status) == 0 else { throw .last }
      guard status.st_mode & S_IFMT == S_IFDIR else { throw .notAFolder }
      return 0
    }
    guard error == .notFound, let slash = path.lastIndex(of: "/"), slash != path.startIndex else { throw error }
    let above = try makeFolders(String(path[..<slash]))
    if mkdir(path, 0o700) == 0 { return above + 1 }
    guard errno == EEXIST else { throw .last }
    return above
  }

  /// The folder that holds what is at `path`, which has no links in it; the topmost holds itself.
  static func parent(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
    return String(path[..<slash])
  }

  /// The path without links, `.` and `..`.
  static func resolved(_ path: String) throws(SystemError) -> String {
    guard let result = realpath(path, nil) else { throw .last }
    defer { free(result) }
    return String(cString: result)
  }

  static func link(_ from: String, _ to: String) -> SystemError? { linkSystem(from, to) == 0 ? nil : .last }

  private static func linkSystem(_ from: String, _ to: String) -> Int32 { linkat(AT_FDCWD, from, AT_FDCWD, to, 0) }

  @discardableResult
  static func removeEmptyFolder(_ path: String) -> Bool { rmdir(path) == 0 }

  static var processID: Int32 { getpid() }

  /// The names in a folder, in no order; a link in the folder's place is not followed.
  static func names(in folder: String) throws(SystemError) -> [String] {
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { throw .last }
    guard let stream = fdopendir(descriptor) else {
      let error = SystemError.last
      close(descriptor)
      throw error
    }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(validating: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      // What is not UTF-8 is no name of ours.
      if let name, name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  /// Removes a file, or a folder with all that is in it. Links are removed, never followed. What can't be removed stays.
  static func removeTree(_ path: String, _ calls: FileCalls) {
    guard let status = try? FileStatus(path: path) else { return }
    if status.kind == .folder {
      for name in (try? names(in: path)) ?? [] { removeTree("\(path)/\(name)", calls) }
      removeEmptyFolder(path)
    } else {
      _ = calls.unlink(path)
    }
  }
}
