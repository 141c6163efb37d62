internal import CacheCore

/// What processes left behind that ended in the middle of a write.
extension StoreFolder {
  /// Removes what processes left behind that ended in the middle of a write. What a live one is writing stays.
  ///
  /// - Returns: how much there was, but for locks.
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

  /// `12-ab…` of `12-ab….lock` and of `12-ab…-7.spool`.
  private static func owner(of name: String) -> String {
    let stem = name.prefix { $0 != "." }
    return stem.split(separator: "-", omittingEmptySubsequences: false).prefix(2).joined(separator: "-")
  }

  private func isAlive(_ owner: String) -> Bool {
    guard let file = try? FileDescriptor("\(tmp)/\(owner).lock", .readAndWrite) else {
      // The drafts of a key have no owner, but whoever makes one holds the folder's lock.
      guard !owner.contains("-"), let folder = try? FileDescriptor(root, .folder) else { return false }
      return !Self.canBeLocked(folder)
    }
    return !Self.canBeLocked(file)
  }

  /// Whether nobody holds its lock. Let go of at once, and not by the close alone: see ``FileDescriptor/waitForLock(_:)``.
  private static func canBeLocked(_ file: FileDescriptor) -> Bool {
    defer { file.unlock() }
    return file.lockExclusively()
  }
}
