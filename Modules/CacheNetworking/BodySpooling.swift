internal import CacheCore
internal import Foundation

/// Collects a request body from its stream in a form that `URLSession` can send: memory for a small body, a file for a larger
/// one.
struct BodySpooling {
  /// The maximum number of bytes of a body that stay in memory.
  var memoryLimit: Int
  /// The folder for the files.
  var folder: URL

  /// Reads the body to its end. The file is removed if this throws.
  func collect(_ body: ResourceBody) async throws(CacheError) -> OutgoingBody {
    if let data = body.data { return .data(data) }
    var start = Data()
    var file: SpoolFile?
    while let chunk = try await body.source.next() {
      if let file {
        try await append(chunk, to: file, of: body)
      } else if start.count + chunk.count <= memoryLimit {
        start.append(chunk)
      } else {
        let new: SpoolFile
        do {
          new = try SpoolFile(in: folder)
        } catch {
          body.source.cancel()
          throw error
        }
        try await append(start, to: new, of: body)
        try await append(chunk, to: new, of: body)
        start = Data()
        file = new
      }
    }
    return file.map { .file($0) } ?? .data(start)
  }

  private func append(_ data: Data, to file: SpoolFile, of body: ResourceBody) async throws(CacheError) {
    do {
      try await file.append(data)
    } catch {
      body.source.cancel()
      throw error
    }
  }
}
