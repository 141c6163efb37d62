#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// System calls on paths that tests need not replace. None follows a final link, and only `makeFolders` acts outside the store's
/// folder.
enum Paths {
  /// Creates a folder. Returns whether it did not exist before.
  @discardableResult
  static func makeFolder(_ path: String) throws(SystemError) -> Bool {
    if mkdir(path, 0o700) == 0 { return true }
    let error = SystemError.last
    guard error == .exists else { throw error }
    // A link to a folder would lead outside the store.
    guard try FileStatus(path: path).kind == .folder else { throw .notAFolder }
    return false
  }

  /// Creates a folder and its missing parents. Links on the way are the caller's choice and are followed.
  ///
  /// - Returns: The number of folders created.
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

  /// Returns the parent of a path without links. The parent of the root is the root.
  static func parent(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
    return String(path[..<slash])
  }

  /// Returns the path without links, `.` and `..`.
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

  /// Returns the names in a folder, in no particular order. A link in the folder's place is not followed.
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
      // A name that is not UTF-8 is not one of the store's.
      if let name, name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  /// Removes a file, or a folder with its contents. Links are removed but not followed. Items that cannot be removed stay.
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
