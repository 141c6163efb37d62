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
