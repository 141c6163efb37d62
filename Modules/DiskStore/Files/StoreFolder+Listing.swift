internal import CacheCore

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
      for shard in shards { try list(shard, body) }
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
