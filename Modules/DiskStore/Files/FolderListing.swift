internal import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

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
