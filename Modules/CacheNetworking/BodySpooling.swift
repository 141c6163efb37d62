internal import CacheCore
internal import Foundation

/// Takes a request's body from its stream to where `URLSession` can send it from: memory for a small one, else a file.
struct BodySpooling {
  /// Bytes up to which a body stays in memory.
  var memoryLimit: Int
  /// Where files go.
  var folder: URL

  /// Reads the body to its end. What was written is gone when this throws.
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
