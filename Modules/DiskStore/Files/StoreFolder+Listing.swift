internal import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

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
          return try FileStatus(name.assumingMemoryBound(to: CChar.self), in: folder)
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
        if name.first != 0x2E { body(Item(bytes: name, folder: descriptor)) }
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
