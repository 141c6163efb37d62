internal import CacheCore

/// Files in which entries are written.
extension StoreFolder {
  /// A new temporary file, open. What was deleted around it is made again.
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
      throw error.error("make a temporary file", tmp)
    }
  }
}
