internal import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The removal of many files at once.
extension StoreFolder {
  /// The outcome of the removal of one of many files.
  enum BatchRemoval {
    case removed, absent, failed(SystemError)
    /// Another process used the entry after it was chosen for eviction.
    case kept(FileStatus)

    /// Whether the store no longer has the file.
    var isGone: Bool {
      switch self {
      case .removed, .absent: true
      case .failed, .kept: false
      }
    }
  }

  /// Opens the folder of the entries whose resource digests begin with these digits.
  func shardFolder(_ shard: UInt8) -> Result<FileDescriptor, SystemError> {
    let digits = String(shard, radix: 16)
    let name = (digits.count == 1 ? "0" : "") + digits
    // One step at a time, because an open with a whole path refuses only a final link.
    return Result { () throws(SystemError) in
      try FileDescriptor(name, .folder, in: FileDescriptor("entries", .folder, in: FileDescriptor(root, .folder)))
    }
  }

  /// Removes a file.
  ///
  /// - Parameter use: The last use that this cache knows. A file with a later time is kept, because another cache has used the
  ///   entry. With `nil`, the file is removed in any case.
  func remove(
    _ name: EntryName, in shard: Result<FileDescriptor, SystemError>, unlessUsedSince use: Timestamp? = nil
  ) -> BatchRemoval {
    switch shard {
    case .success(let shard): remove(name, inOpen: shard, use)
    case .failure(let error): BatchRemoval(error)
    }
  }

  private func remove(_ name: EntryName, inOpen shard: FileDescriptor, _ use: Timestamp?) -> BatchRemoval {
    guard name.member != nil else { return remove(name, from: shard, use) }
    return name.withLastComponent(of: .resourceFolder) { folderName in
      switch Result(catching: { () throws(SystemError) in try FileDescriptor(folderName, .folder, in: shard) }) {
      case .failure(let error): return BatchRemoval(error)
      case .success(let folder):
        let outcome = remove(name, from: folder, use)
        if case .removed = outcome { _ = unlinkat(shard.raw, folderName, AT_REMOVEDIR) }
        return outcome
      }
    }
  }

  private func remove(_ name: EntryName, from folder: FileDescriptor, _ use: Timestamp?) -> BatchRemoval {
    name.withLastComponent(of: .file) { name in
      if let use, let status = try? FileStatus(path: name, in: folder.raw), status.kind == .file, status.modified > use {
        return .kept(status)
      }
      return calls.unlinkInside(folder.raw, name).map { BatchRemoval($0) } ?? .removed
    }
  }
}

extension StoreFolder.BatchRemoval {
  /// Creates the outcome of a file that could not be removed. Most such files are already gone, or are behind a link.
  init(_ error: SystemError) {
    self = [.notFound, .notAFolder, .isLink].contains(error) ? .absent : .failed(error)
  }
}

/// The removal of all entries.
extension StoreFolder {
  /// Returns a path for entries that are being removed. If the disk has no space for a lock file, the path has no owner, so the
  /// next process that collects orphans removes it.
  private func trashPath() throws(SystemError) -> String {
    do throws(SystemError) {
      return try temporaryPath("trash")
    } catch {
      guard error.meansDiskFull else { throw error }
      return "\(tmp)/\(Revision.random()).trash"
    }
  }

  /// Removes all entries in one step and deletes their files afterwards. Entries stored meanwhile go into a new folder.
  func removeAll() throws(CacheError) {
    do throws(SystemError) {
      try prepareToWrite()
      for _ in 0..<8 {
        do throws(SystemError) {
          guard (try? FileStatus(path: entries)) != nil else { return try restore() }
          let trash = try trashPath()
          if let error = change({ calls.rename(entries, trash) }) { throw error }
          // If there is no space for a new folder, deleting the old entries makes space.
          if (try? Paths.makeFolder(entries)) == nil { Paths.removeTree(trash, calls) }
          try Paths.makeFolder(entries)
          if syncsFolders { try calls.synchronize(FileDescriptor(root, .folder)) }
          return Paths.removeTree(trash, calls)
        } catch {
          // The entries may still exist: the missing folder can be the one they were to be moved to.
          guard error == .notFound else { throw error }
          try restore()
        }
      }
      throw .notFound
    } catch {
      throw error.error("remove the entries", entries)
    }
  }
}

/// Placing and removing the files of entries.
extension StoreFolder {
  /// Moves a finished file into place with one rename. Missing folders are created.
  ///
  /// - Parameter rewrite: Writes the temporary file again if it was deleted together with the folder.
  func place(
    _ spool: String, _ name: EntryName, syncsFolders: Bool, rewrite: () throws(CacheError) -> String
  ) throws(CacheError) {
    var spool = spool
    let target = path(name)
    var failure = SystemError.notFound
    for _ in 0..<8 {
      guard !calls.isSuspended else {
        failure = .suspended
        break
      }
      do throws(SystemError) {
        let isNew = try makeParents(of: name)
        guard let error = change({ calls.rename(spool, target) }) else {
          if syncsFolders { try synchronizeFolders(of: name, isNew: isNew) }
          return
        }
        failure = error
      } catch {
        failure = error
      }
      if failure == .notFound {
        do throws(SystemError) { try restore() } catch { throw error.error("recreate the store's folder", root) }
        if (try? FileStatus(path: spool)) == nil { spool = try rewrite() }
      } else if let kind = try? FileStatus(path: target).kind, kind == .folder {
        Paths.removeTree(target, calls)
      } else {
        break
      }
    }
    _ = calls.unlink(spool)
    throw failure.error("move an entry into place", target)
  }

  /// Returns whether a folder was created.
  private func makeParents(of name: EntryName) throws(SystemError) -> Bool {
    try Self.requireFolder(root)
    try Self.requireFolder(entries)
    var isNew = try makeInside(name, .shard)
    if name.member != nil, try makeInside(name, .resourceFolder) { isNew = true }
    return isNew
  }

  private func makeInside(_ name: EntryName, _ part: EntryName.Part) throws(SystemError) -> Bool {
    do throws(SystemError) {
      if try status(name, part).kind == .folder { return false }
      // A file or a link in place of a folder is removed. The target of the link stays.
      if let error = calls.unlink(path(name, part)) { throw error }
    } catch {
      guard error == .notFound else { throw error }
    }
    return try Paths.makeFolder(path(name, part))
  }

  private func synchronizeFolders(of name: EntryName, isNew: Bool) throws(SystemError) {
    try calls.synchronize(FileDescriptor(path(name, name.member == nil ? .shard : .resourceFolder), .folder))
    guard isNew else { return }
    if name.member != nil { try calls.synchronize(FileDescriptor(path(name, .shard), .folder)) }
    try calls.synchronize(FileDescriptor(entries, .folder))
  }

  enum Removal { case removed, absent, failed(SystemError) }

  /// Removes an entry's file.
  ///
  /// - Parameter identity: The file to remove; another one in its place stays. `nil` removes any file.
  @discardableResult
  func remove(_ name: EntryName, ifStill identity: FileStatus.Identity? = nil) -> Removal {
    do throws(SystemError) {
      try prepareToWrite()
      try requireFolders(of: name)
      if let identity, try status(name, .file).identity != identity { return .absent }
    } catch {
      return error == .notFound || error == .notAFolder ? .absent : .failed(error)
    }
    if let error = change({ calls.unlink(path(name)) }) { return error == .notFound ? .absent : .failed(error) }
    if name.member != nil { Paths.removeEmptyFolder(path(name, .resourceFolder)) }
    return .removed
  }
}

/// The listing of files.
extension StoreFolder {
  /// Opens the folder of all entries, or returns `nil` if that fails.
  func openEntries() -> FileDescriptor? { try? FileDescriptor(entries, .folder) }

  /// Calls `body` for every file with an entry's name. Links and other files are skipped. A file without a readable status is
  /// reported as empty.
  func forEachEntry(_ body: (EntryName, FileStatus) -> Void) throws(CacheError) {
    do throws(SystemError) {
      var shards: [String] = []
      try FolderListing(entries)?.forEach { shard in
        if EntryName.isShard(shard.bytes) { shards.append(shard.text) }
      }
      for shard in shards {
        // The locks are handed back when the last job ends, so a long one must not delay that.
        guard !calls.isSuspended else { throw .suspended }
        try list(shard, body)
      }
    } catch {
      throw error.error("list the entries", entries)
    }
  }

  private func list(_ shard: String, _ body: (EntryName, FileStatus) -> Void) throws(SystemError) {
    let digits = Array(shard.utf8)
    var folders: [(String, NameDigest)] = []
    try FolderListing("\(entries)/\(shard)")?.forEach { item in
      if let name = EntryName(shard: digits, file: item.bytes) {
        if let status = item.status { body(name, status) }
      } else if let resource = EntryName.resource(ofFolder: item.bytes), item.bytes.starts(with: digits) {
        folders.append((item.text, resource))
      }
    }
    for (folder, resource) in folders {
      try FolderListing("\(entries)/\(shard)/\(folder)")?.forEach { item in
        guard let name = EntryName(resource: resource, member: item.bytes), let status = item.status else { return }
        body(name, status)
      }
    }
  }

  /// Returns the status of an entry's file, or `nil` if it is not a file or is behind a link. A file without a readable status is
  /// reported as empty.
  func status(_ name: EntryName) -> FileStatus? {
    FolderListing.fileStatus(
      Result { () throws(SystemError) in
        try requireFolders(of: name)
        return try FileStatus(path: path(name))
      })
  }

  /// Returns the names of a resource's other files that can be variants.
  func variantNames(of plain: EntryName) throws(SystemError) -> [EntryName] { try memberNames(of: plain, inTransforms: false) }

  /// Returns the names of a resource's files that can be transformed values.
  func transformNames(of plain: EntryName) throws(SystemError) -> [EntryName] { try memberNames(of: plain, inTransforms: true) }

  private func memberNames(of plain: EntryName, inTransforms: Bool) throws(SystemError) -> [EntryName] {
    var names: [EntryName] = []
    try FolderListing(path(plain, .resourceFolder))?.forEach { item in
      if let name = EntryName(resource: plain.resource, member: item.bytes), name.member?.isTransform == inTransforms {
        names.append(name)
      }
    }
    return names
  }
}

/// The names in one of the store's folders, one at a time and without a string for each, because a folder can have very many.
struct FolderListing: ~Copyable {
  /// A name, valid during the call that receives it.
  struct Item {
    let bytes: UnsafeRawBufferPointer
    fileprivate let folder: Int32

    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The status of the file, or `nil` if it is not a file or no longer exists. Links are not followed.
    var status: FileStatus? {
      FolderListing.fileStatus(
        Result { () throws(SystemError) in
          guard let name = bytes.baseAddress else { throw .notFound }
          return try FileStatus(path: name.assumingMemoryBound(to: CChar.self), in: folder)
        })
    }
  }

  #if canImport(Darwin)
  private typealias Stream = UnsafeMutablePointer<DIR>
  #else
  private typealias Stream = OpaquePointer
  #endif

  private let stream: Stream
  private let descriptor: Int32

  /// Opens a folder, or returns `nil` if it does not exist. A link in its place is not followed.
  init?(_ path: String) throws(SystemError) {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else {
      let error = SystemError.last
      if [.notFound, .notAFolder, .isLink].contains(error) { return nil }
      throw error
    }
    guard let stream = fdopendir(descriptor) else {
      let error = SystemError.last
      close(descriptor)
      throw error
    }
    self.stream = stream
    self.descriptor = descriptor
  }

  deinit { closedir(stream) }

  consuming func forEach(_ body: (Item) -> Void) throws(SystemError) {
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        let error = SystemError.last
        // An error must not end the listing early, because the list would be taken as complete.
        guard error.number == 0 else { throw error }
        return
      }
      withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        let length = bytes.firstIndex(of: 0) ?? bytes.count
        let name = UnsafeRawBufferPointer(rebasing: bytes[0..<length])
        let isLink = name.first == 0x2E && (name.count == 1 || name.count == 2 && name[1] == 0x2E)
        if !isLink { body(Item(bytes: name, folder: descriptor)) }
      }
    }
  }

  /// Returns the status if it is that of a file. A file that cannot be examined is assumed to exist.
  static func fileStatus(_ found: Result<FileStatus, SystemError>) -> FileStatus? {
    switch found {
    case .success(let status): status.kind == .file ? status : nil
    case .failure(.notFound), .failure(.notAFolder): nil
    case .failure: .unknown
    }
  }
}
