internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Brings stored bodies to the destination of a request.
extension TieredCache {
  /// A stored body at its destination.
  struct Content {
    /// The bytes that the requester gets. Empty if the destination is a file or a store.
    var body: ResourceBody
    /// The layer that the body came from.
    var source: ResourceSource
    /// All bytes of the stored body, if they are in memory.
    var data: Data? = nil
    /// Whether the body was left in the durable store, because the stored transforms are sufficient.
    var isBodyLeft = false
    /// The encoded values of these transforms.
    var encoded: [String: Data] = [:]
    /// The part of the memory budget that the body uses, or `nil` if it belongs to the memory store.
    var reservation: MemoryReservation? = nil
  }

  /// Brings the body of a stored response to the request's destination.
  ///
  /// - Parameters:
  ///   - candidate: The stored response.
  ///   - priority: The priority of a load that waits for memory, which later waiters may raise.
  ///   - part: The bytes of the reply. A load needs the whole body.
  /// - Returns: `nil` if the body is missing, damaged, or cannot be read. The response is then a miss.
  /// - Throws: A cancellation, or an error of the destination, such as an unwritable file or a body that is too large.
  func content(
    of candidate: Candidate, _ priority: LoadPriority, _ part: StoredReply.Content = .whole
  ) async throws(CacheError) -> Content? {
    switch request.destination {
    case .stream: return try await streamed(candidate, part)
    case .memory: return try await collected(candidate, priority)
    case .file(let file): return try await file.isSealed ? .none(from: .disk) : copied(candidate)
    case .store: return .none(from: .disk)
    }
  }

  // MARK: To a reader

  private func streamed(
    _ candidate: Candidate, _ part: StoredReply.Content
  ) async throws(CacheError) -> Content? {
    if case .none = part { return .none(from: candidate.source) }
    if let content = contentInMemory(candidate, part) { return content }
    guard let disk = readableDisk else { return nil }
    if let data = candidate.data {
      // The store has already loaded the body. Memory accepts it only within its limit for streams.
      let fitsInMemory = Int64(data.count) <= request.maximumBodyInMemory
      return Content(body: part.body(of: data), source: .disk, data: fitsInMemory ? data : nil)
    }
    do throws(CacheError) {
      var range: Range<Int64>?
      if case .range(let requested) = part { range = requested }
      guard let entry = try await entry(of: candidate, range: range, in: disk) else { return nil }
      guard range == nil, let length = entry.body.length, length <= request.maximumBodyInMemory,
        let reservation = request.budget.streamReservation(holding: Int(length))
      else {
        guard entry.body.data == nil else { return Content(body: entry.body, source: .disk) }
        // Damage at the start is found before the caller has a response, so that the request can still be sent.
        let first = try await bounded(entry.body).source.next()
        if let first, Int64(first.count) == entry.body.length { return Content(body: ResourceBody(first), source: .disk) }
        return Content(
          body: ResourceBody(length: entry.body.length, source: ContinuedBody(first, entry.body.source)), source: .disk)
      }
      let data = try await bounded(entry.body).collect(limit: length)
      guard data.count > MemoryBudget.streamed else { return Content(body: ResourceBody(data), source: .disk, data: data) }
      let body = ResourceBody(length: length, source: StoredBytes(data, reservation))
      return Content(body: body, source: .disk, data: data)
    } catch {
      return try unreadable(error)
    }
  }

  private func contentInMemory(_ candidate: Candidate, _ part: StoredReply.Content) -> Content? {
    let known = candidate.source == .memory ? candidate.data : nil
    guard let data = known ?? value(of: candidate, transform: "", as: Data.self) else { return nil }
    return Content(body: part.body(of: data), source: .memory, data: data)
  }

  // MARK: Into memory

  private func collected(_ candidate: Candidate, _ priority: LoadPriority) async throws(CacheError) -> Content? {
    if let content = contentInMemory(candidate, .whole) { return content }
    guard let disk = readableDisk else { return nil }
    if !candidate.transforms.isEmpty, let representation = request.representation,
      representation.isSatisfied(by: candidate.transforms),
      let encoded = try await readTransforms(representation.transforms, of: candidate, in: disk)
    {
      return Content(body: .none, source: .disk, isBodyLeft: true, encoded: encoded)
    }
    do throws(CacheError) {
      guard let (data, reservation) = try await read(candidate, from: disk, priority) else { return nil }
      return Content(body: ResourceBody(data), source: .disk, data: data, reservation: reservation)
    } catch {
      if error.code == .bodyTooLarge { throw error }
      return try unreadable(error)
    }
  }

  private func read(
    _ candidate: Candidate, from disk: any CacheStore, _ priority: LoadPriority
  ) async throws(CacheError) -> (Data, MemoryReservation)? {
    if let data = candidate.data {
      guard data.count <= request.maximumBodySize else { throw request.bodyTooLarge }
      return (data, request.budget.reservation(holding: data.count))
    }
    guard let entry = try await entry(of: candidate, in: disk) else { return nil }
    if let length = entry.body.length, length > request.maximumBodySize { throw request.bodyTooLarge }
    let reservation = request.budget.reservation(holding: 0, request.isNested ? nil : priority)
    // All of a file is available, so it is reserved as a whole, and the load does not hold memory for a slow body.
    let length = entry.body.length ?? Int64(MemoryBudget.streamed)
    try await reservation.grow(to: length, most: length)
    let data = try await bounded(entry.body).collect(limit: request.maximumBodySize)
    reservation.hold(Int64(data.count))
    return (data, reservation)
  }

  // MARK: Into a file

  private func copied(_ candidate: Candidate) async throws(CacheError) -> Content? {
    if let content = contentInMemory(candidate, .whole) {
      return try await copy(content.body) ? .none(from: .memory) : nil
    }
    guard let disk = readableDisk else { return nil }
    if let data = candidate.data { return try await copy(ResourceBody(data)) ? .none(from: .disk) : nil }
    let body: ResourceBody
    do throws(CacheError) {
      guard let entry = try await entry(of: candidate, in: disk) else { return nil }
      body = bounded(entry.body)
    } catch {
      return try unreadable(error)
    }
    return try await copy(body) ? .none(from: .disk) : nil
  }

  /// Returns whether the whole body could be read.
  private func copy(_ body: ResourceBody) async throws(CacheError) -> Bool {
    var collector = BodyCollector(request, length: body.length)
    try await collector.begin()
    while true {
      if Task.isCancelled { throw .cancelled }
      let next: Data?
      do throws(CacheError) {
        next = try await body.source.next()
      } catch {
        return try unreadable(error) != nil
      }
      guard let chunk = next else { break }
      try await collector.take(chunk)
    }
    try await collector.finish()
    return true
  }

  /// Returns the stored entry of a candidate, or `nil` if the entry is missing or another one has replaced it.
  private func entry(
    of candidate: Candidate, range: Range<Int64>? = nil, in disk: any CacheStore
  ) async throws(CacheError) -> StoredEntry? {
    let entry = try await read { () throws(CacheError) in try await disk.entry(for: candidate.key, range: range) }
    return entry?.metadata.revision == candidate.metadata.revision ? entry : nil
  }

  private func unreadable(_ error: CacheError) throws(CacheError) -> Content? {
    if error.isCancellation { throw error }
    request.observe(.readFailed(resource: resource, error: error))
    return nil
  }
}

extension TieredCache.Content {
  fileprivate static func none(from source: ResourceSource) -> TieredCache.Content {
    TieredCache.Content(body: .none, source: source)
  }
}

extension StoredReply.Content {
  fileprivate func body(of data: Data) -> ResourceBody {
    switch self {
    case .none: return .none
    case .whole: return ResourceBody(data)
    case .range(let range):
      let clamped = range.clamped(to: 0..<Int64(data.count))
      let bytes = data[data.startIndex + Int(clamped.lowerBound)..<data.startIndex + Int(clamped.upperBound)]
      // A copy of a small part does not keep the whole body alive. Copies of large parts, for many readers, would exceed memory.
      guard bytes.count > MemoryBudget.streamed else { return ResourceBody(Data(bytes)) }
      return ResourceBody(length: Int64(bytes.count), source: StoredBytes(bytes))
    }
  }
}

extension ResourceBody {
  /// A body without bytes.
  static var none: ResourceBody { ResourceBody(Data()) }
}
