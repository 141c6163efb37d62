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
  func shardFolder(_ shard: UInt8) -> Result<OpenFolder, SystemError> {
    let digits = String(shard, radix: 16)
    let name = (digits.count == 1 ? "0" : "") + digits
    // One step at a time, because an open with a whole path refuses only a final link.
    return Result { () throws(SystemError) in try OpenFolder(name, in: OpenFolder("entries", in: OpenFolder(root))) }
  }

  /// Removes a file.
  ///
  /// - Parameter use: The last use that this cache knows. A file with a later time is kept, because another cache has used the
  ///   entry. With `nil`, the file is removed in any case.
  func remove(
    _ name: EntryName, in shard: Result<OpenFolder, SystemError>, unlessUsedSince use: Timestamp? = nil
  ) -> BatchRemoval {
    switch shard {
    case .success(let shard): remove(name, inOpen: shard, use)
    case .failure(let error): BatchRemoval(error)
    }
  }

  private func remove(_ name: EntryName, inOpen shard: OpenFolder, _ use: Timestamp?) -> BatchRemoval {
    guard name.member != nil else { return remove(name, from: shard, use) }
    return name.withResourceFolderName { folderName in
      switch Result(catching: { () throws(SystemError) in try OpenFolder(folderName, in: shard) }) {
      case .failure(let error): return BatchRemoval(error)
      case .success(let folder):
        let outcome = remove(name, from: folder, use)
        if case .removed = outcome { shard.removeEmptyFolder(folderName) }
        return outcome
      }
    }
  }

  private func remove(_ name: EntryName, from folder: OpenFolder, _ use: Timestamp?) -> BatchRemoval {
    name.withFileName { name in
      if let use, case .success(let status) = Result(catching: { () throws(SystemError) in try folder.status(name) }),
        status.kind == .file, status.modified > use
      {
        return .kept(status)
      }
      return folder.remove(name, calls).map { BatchRemoval($0) } ?? .removed
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

/// An open folder, which saves resolving the path for each file in it. A link in its place is not followed.
struct OpenFolder {
  private let descriptor: FileDescriptor

  init(_ path: String) throws(SystemError) { descriptor = try FileDescriptor(path, .folder) }

  /// Opens a folder inside an open folder.
  init(_ name: UnsafePointer<CChar>, in folder: OpenFolder) throws(SystemError) {
    descriptor = try FileDescriptor(name, in: folder.descriptor.raw)
  }

  /// Returns the status of the file at `name`. A link is not followed.
  func status(_ name: UnsafePointer<CChar>) throws(SystemError) -> FileStatus { try FileStatus(name, in: descriptor.raw) }

  func remove(_ name: UnsafePointer<CChar>, _ calls: FileCalls) -> SystemError? { calls.unlinkInside(descriptor.raw, name) }

  func removeEmptyFolder(_ name: UnsafePointer<CChar>) { _ = unlinkat(descriptor.raw, name, AT_REMOVEDIR) }
}

extension EntryName {
  /// Calls `body` with the file's name in its folder.
  func withFileName<Value>(_ body: (UnsafePointer<CChar>) -> Value) -> Value {
    let suffix: UInt8 = member.map { $0.isTransform ? Member.transformSuffix : Member.originalSuffix } ?? Member.originalSuffix
    return Self.withName(member?.digest ?? resource, suffix, body)
  }

  /// Calls `body` with the name of the resource's folder in its shard.
  func withResourceFolderName<Value>(_ body: (UnsafePointer<CChar>) -> Value) -> Value {
    Self.withName(resource, Self.folderSuffix, body)
  }

  private static func withName<Value>(_ digest: NameDigest, _ suffix: UInt8, _ body: (UnsafePointer<CChar>) -> Value) -> Value {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 35) { name in
      for place in 0..<32 {
        let word = place < 16 ? digest.high : digest.low
        let digit = CChar(word >> UInt64(60 - 4 * (place & 15)) & 15)
        name.initializeElement(at: place, to: digit < 10 ? 0x30 + digit : 0x61 - 10 + digit)
      }
      for (place, byte) in [0x2E, CChar(suffix), 0].enumerated() { name.initializeElement(at: 32 + place, to: byte) }
      return name.baseAddress.map { body(UnsafePointer($0)) } ?? body("")
    }
  }
}
