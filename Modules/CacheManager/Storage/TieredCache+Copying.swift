internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// How what is stored gets to a load that does not want it in memory.
extension TieredCache {
  /// Takes the bytes of a candidate to where the load wants them, chunk by chunk. Nil: they are gone, damaged, or can't be read.
  ///
  /// - Throws: what the caller's side has to say: a cancellation, a file that can't be written, a body that is too large. None of
  ///   it says anything about the entry.
  func copy(_ candidate: Candidate) async throws(CacheError) -> Kept? {
    guard !load.target.isContentWithStored else { return Kept(data: Data(), source: .disk) }
    if let data = value(of: candidate, transform: "", as: Data.self) {
      return try await take(ResourceBody(data)) ? Kept(data: Data(), source: .memory) : nil
    }
    guard load.reads.contains(.disk), let store = load.store else { return nil }
    let body: ResourceBody
    if let atHand = candidate.data {
      body = ResourceBody(atHand)
    } else {
      do throws(CacheError) {
        guard let entry = try await store.entry(for: candidate.key), entry.metadata.revision == candidate.metadata.revision else {
          return nil
        }
        body = entry.body
      } catch {
        return try unreadable(error)
      }
    }
    return try await take(body) ? Kept(data: Data(), source: .disk) : nil
  }

  private func take(_ body: ResourceBody) async throws(CacheError) -> Bool {
    var sink = BodySink(load)
    try await sink.begin(expecting: body.length)
    while true {
      if Task.isCancelled { throw .cancelled }
      let next: Data?
      do throws(CacheError) {
        next = try await body.source.next()
      } catch {
        return try unreadable(error) != nil
      }
      guard let chunk = next else { break }
      try await sink.take(chunk, of: body.length)
    }
    try await sink.finish()
    return true
  }

  private func unreadable(_ error: CacheError) throws(CacheError) -> Kept? {
    if error.isCancellation { throw error }
    load.observe(.readFailed(resource: resource, error: error))
    return nil
  }

  /// Files a stored answer under another variant too. What can't be filed is asked about again: that is no failure.
  @inline(never)
  func file(_ copy: StoreChanges.Copy, _ data: Data, known: [Candidate]) async {
    var candidate = Candidate(key: CacheKey(resource: resource, variant: copy.variant), metadata: copy.metadata)
    candidate.metadata.expiration = .earlier(copy.metadata.expiration, load.expiration, from: copy.metadata.responseTime)
    candidate.metadata.bodyLength = Int64(data.count)
    let committed = await put(data, candidate)
    if let committed { candidate.metadata = committed }
    await store(data, candidate, isOnDisk: committed != nil, replacing: [], known: known)
  }

  /// Stores an original that nobody wanted there when its head came, and somebody does now.
  @inline(never)
  func keepOriginal(_ data: Data, _ candidate: Candidate) async -> StoredMetadata? {
    guard surviving(candidate) != nil, let committed = await put(data, candidate) else { return nil }
    load.observe(.stored(key: candidate.key, layer: .disk, bytes: Int64(data.count)))
    return committed
  }

  /// - Returns: the metadata as the disk has committed it; nil: it has not.
  private func put(_ data: Data, _ candidate: Candidate) async -> StoredMetadata? {
    guard let writer = try? await writer(candidate) else { return nil }
    do throws(CacheError) {
      try await writer.write(data)
      return try await writer.commit(trailers: nil)
    } catch {
      writer.abort()
      load.observe(.storeFailed(key: candidate.key, error: error))
      return nil
    }
  }
}
