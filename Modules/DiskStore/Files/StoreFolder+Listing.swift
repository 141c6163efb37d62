internal import CacheCore

/// What lies in the folder.
extension StoreFolder {
  /// Calls `body` with every file that bears an entry's name; links and foreign files are passed over.
  func forEachEntry(_ body: (EntryName, FileStatus) -> Void) throws(CacheError) {
    do throws(SystemError) {
      for shard in try names(entries) where EntryName.isShard(shard) {
        for file in try names("\(entries)/\(shard)") {
          if let name = EntryName(shard: shard, file: file) {
            visit(name, body)
          } else if EntryName.isResourceFolder(file), file.hasPrefix(shard) {
            for member in try names("\(entries)/\(shard)/\(file)") {
              if let name = EntryName(folder: file, member: member) { visit(name, body) }
            }
          }
        }
      }
    } catch {
      throw error.error("list the entries", entries)
    }
  }

  private func visit(_ name: EntryName, _ body: (EntryName, FileStatus) -> Void) {
    guard let status = try? FileStatus(path: path(name)), status.kind == .file else { return }
    body(name, status)
  }

  /// The names in a folder of ours; none when it is gone, or is none.
  private func names(_ folder: String) throws(SystemError) -> [String] {
    do throws(SystemError) { return try Paths.names(in: folder) } catch {
      if [.notFound, .notAFolder, .isLink].contains(error) { return [] }
      throw error
    }
  }

  /// The other files of a resource that may be its variants.
  func variantNames(of plain: EntryName) throws(SystemError) -> [EntryName] {
    let folder = "\(plain.resource)\(EntryName.folderSuffix)"
    return try names("\(entries)/\(plain.resourceFolder)").compactMap { member in
      member.hasSuffix(EntryName.originalSuffix) ? EntryName(folder: folder, member: member) : nil
    }
  }
}
