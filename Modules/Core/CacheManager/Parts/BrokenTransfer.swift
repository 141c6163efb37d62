internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The part of a body whose transfer broke off, or whose reader has left. It is stored, so that a later request completes it (RFC
/// 9111 §3.3).
struct BrokenTransfer: Sendable {
  /// The fewest bytes that are stored. Fewer cost as much as a request for them.
  private static let shortest: Int64 = 64 << 10

  private let part: Candidate
  private let cache: TieredCache
  private let ticket: CommitOrder.Ticket?
  private let writer: (any EntryWriter)?
  private let data: Data?

  /// Returns `nil` if no later request can complete the part, or if it would replace a stored response.
  ///
  /// - Parameters:
  ///   - storage: The entry of the whole body.
  ///   - request: The request.
  ///   - ticket: The ticket of the response.
  ///   - writer: The writer of the durable store, which has received the bytes.
  ///   - data: The bytes, if they were collected in memory.
  ///   - count: The number of bytes.
  ///   - length: The announced length in bytes.
  init?(
    _ storage: RecordingBody.Storage, _ request: ResolvedRequest, _ ticket: CommitOrder.Ticket?, _ writer: (any EntryWriter)?,
    _ data: Data?, _ count: Int64, of length: Int64?
  ) {
    guard count >= Self.shortest, let length, count < length, request.validator?.combinesParts == true, !request.isFromCaller,
      storage.parts == nil, !storage.omitsOriginal, writer != nil || !request.hasStore && Int64(data?.count ?? 0) == count,
      !storage.known.contains(where: { $0.key == storage.candidate.key }),
      let part = Self.part(storage.candidate, request, count, of: length)
    else { return nil }
    (self.part, cache, self.ticket, self.writer, self.data) = (part, storage.cache, ticket, writer, data)
  }

  private static func part(_ whole: Candidate, _ request: ResolvedRequest, _ count: Int64, of length: Int64) -> Candidate? {
    var part = whole
    part.metadata.bodyLength = count
    let response = whole.metadata.response
    if response.status == .partialContent { return part }
    // An engine that decodes removes the length. The received bytes would not be those of a range.
    guard response.status == .ok, response.headerFields.contentLength == length else { return nil }
    var head = HTTPResponse(status: .partialContent, headerFields: response.headerFields)
    head.headerFields[.contentRange] = ContentRange(0..<count, of: length).fieldValue
    head.headerFields[.contentLength] = "\(count)"
    var sent = whole.metadata.request
    sent.headerFields[.range] = "bytes=0-\(count - 1)"
    // The validator describes the part as it would describe a response of the origin.
    guard
      case .store(let variant, let metadata, _) = Planner(request).judge(
        .success(head), to: sent, sent: sent, fallback: nil, stored: [], requestTime: whole.metadata.requestTime,
        now: whole.metadata.responseTime)
    else { return nil }
    part.metadata = metadata
    part.metadata.bodyLength = count
    part.metadata.revision = whole.metadata.revision
    part.metadata.expiration = whole.metadata.expiration
    // A writer's key cannot change.
    if !request.hasStore { part.key = CacheKey(resource: whole.key.resource, variant: variant) }
    return part
  }

  /// Stores the part in a task of its own, because its reader has left.
  func storeInBackground() { Task.detached(priority: .utility) { await store() } }

  private func store() async {
    guard let writer else {
      if let data { cache.storeInMemory(data, part, replacing: []) }
      return
    }
    guard cache.surviving(part) != nil, await ticket?.enter() ?? true else { return writer.abort() }
    defer { ticket?.leave() }
    do throws(CacheError) {
      guard ticket?.followsAnother != true, try await writer.commitPart(as: part.metadata) != nil else { return writer.abort() }
      cache.request.commitOrder.noteCommit(of: part.key.resource)
      await cache.applyPurge(to: part)
    } catch {
      writer.abort()
      cache.request.observe(.storeFailed(key: part.key, error: error))
    }
  }
}

extension Candidate {
  /// Whether the response is the part of a broken transfer, which has the key of the whole response. It must not come into memory,
  /// where that key is looked up for the whole response.
  var isPartUnderKeyOfWhole: Bool {
    metadata.response.status == .partialContent && !key.variant.split(separator: "\n").contains { $0.hasPrefix("range=") }
  }
}
