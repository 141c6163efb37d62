internal import CacheCore

/// The temporary files of entries that are being written.
extension StoreFolder {
  /// Creates and opens a temporary file. Deleted folders on the way are created again.
  func makeSpool() throws(CacheError) -> (path: String, file: FileDescriptor) {
    do throws(SystemError) {
      do throws(SystemError) {
        try prepareToWrite()
        let path = try temporaryPath("spool")
        return (path, try FileDescriptor(path, .createNew))
      } catch {
        guard error == .notFound else { throw error }
        try restore()
        let path = try temporaryPath("spool")
        return (path, try FileDescriptor(path, .createNew))
      }
    } catch {
      throw error.error("create a temporary file", tmp)
    }
  }
}

/// The temporary files of processes that ended during a write.
extension StoreFolder {
  /// Removes the temporary files of processes that ended during a write. Those of live processes stay.
  ///
  /// - Returns: The number of removed items, not counting lock files.
  @discardableResult
  func collectOrphans() -> Int {
    guard isWritable, (try? Self.requireFolder(root)) != nil, (try? Self.requireFolder(tmp)) != nil else { return 0 }
    var count = 0
    let mine = instanceName
    var lives: [String: Bool] = [:]
    for name in (try? Paths.names(in: tmp)) ?? [] {
      let owner = Self.owner(of: name)
      guard owner != mine else { continue }
      let isAlive = lives[owner] ?? isAlive(owner)
      lives[owner] = isAlive
      guard !isAlive else { continue }
      Paths.removeTree("\(tmp)/\(name)", calls)
      if !name.hasSuffix(".lock") { count += 1 }
    }
    return count
  }

  /// Returns `12-ab…` for `12-ab….lock` and `12-ab…-7.spool`.
  private static func owner(of name: String) -> String {
    let stem = name.prefix { $0 != "." }
    return stem.split(separator: "-", omittingEmptySubsequences: false).prefix(2).joined(separator: "-")
  }

  private func isAlive(_ owner: String) -> Bool {
    guard let file = try? FileDescriptor("\(tmp)/\(owner).lock", .readAndWrite) else {
      // The draft of a key has no owner, but the process that writes it has the folder's lock.
      guard !owner.contains("-"), let folder = try? FileDescriptor(root, .folder) else { return false }
      return !Self.canBeLocked(folder)
    }
    return !Self.canBeLocked(file)
  }

  /// Whether the file's lock is free. The lock is released explicitly; see ``FileDescriptor/waitForLock(_:)``.
  private static func canBeLocked(_ file: FileDescriptor) -> Bool {
    defer { file.unlock() }
    return file.lockExclusively()
  }
}
