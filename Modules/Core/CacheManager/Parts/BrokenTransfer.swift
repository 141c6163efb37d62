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
    let (whole, isInMemory) = (storage.candidate, writer == nil && !request.hasStore && Int64(data?.count ?? 0) == count)
    guard count >= Self.shortest, let length, count < length, request.validator?.combinesParts == true, !request.isFromCaller,
      !storage.omitsOriginal, writer != nil || isInMemory, storage.parts?.isStorable != false,
      let part = Self.part(whole, count, of: length, isInMemory: isInMemory, isOfParts: storage.parts != nil),
      !storage.known.contains(where: { $0.key == whole.key && !Self.contains(part, $0) })
    else { return nil }
    (self.part, cache, self.ticket, self.writer, self.data) = (part, storage.cache, ticket, writer, data)
  }

  /// Whether a stored response is a part of the same state whose bytes are among those of `part`, which may therefore replace it.
  private static func contains(_ part: Candidate, _ stored: Candidate) -> Bool {
    let (new, old) = (part.metadata, stored.metadata)
    guard old.response.status == .partialContent, let range = ContentRange(new.response.headerFields),
      let inner = ContentRange(old.response.headerFields), inner.completeLength == range.completeLength,
      let validator = RangeValidator(old.response.headerFields, now: old.responseTime)
    else { return false }
    // The transfer of either may have broken off before the end of its range. A store can state any length.
    func end(_ range: ContentRange, _ metadata: StoredMetadata) -> Int64 {
      range.bytes.lowerBound + min(metadata.bodyLength ?? range.length, range.length)
    }
    return validator.isConfirmed(by: new.response.headerFields)
      && old.response.headerFields[.contentEncoding] == new.response.headerFields[.contentEncoding]
      && range.bytes.lowerBound <= inner.bytes.lowerBound && end(inner, old) <= end(range, new)
  }

  /// - Parameter isOfParts: Whether the whole is combined from parts, whose origin has ranges.
  private static func part(
    _ whole: Candidate, _ count: Int64, of length: Int64, isInMemory: Bool, isOfParts: Bool
  ) -> Candidate? {
    var part = whole
    part.metadata.bodyLength = count
    let fields = whole.metadata.response.headerFields
    if whole.metadata.response.status == .partialContent { return part }
    // The rest can be requested only of an origin that has ranges and a strong validator. An engine that decodes removes the
    // length: the received bytes would not be those of a range.
    guard whole.metadata.response.status == .ok, fields.contentLength == length,
      isOfParts || fields[.acceptRanges]?.lowercased() == "bytes", RangeValidator(fields, now: whole.metadata.responseTime) != nil
    else { return nil }
    let range = "bytes=0-\(count - 1)"
    part.metadata.response.status = .partialContent
    part.metadata.response.headerFields = fields.removing(HTTPFields.digestsContent)
    part.metadata.response.headerFields[.contentRange] = ContentRange(0..<count, of: length).fieldValue
    part.metadata.response.headerFields[.contentLength] = "\(count)"
    part.metadata.request.headerFields[.range] = range
    // A writer's key cannot change. In memory, that key is looked up for the whole response.
    if isInMemory {
      let names = whole.key.variant.split(separator: "\n").map(String.init) + ["range=\(range)"]
      part.key = CacheKey(resource: whole.key.resource, variant: names.sorted().joined(separator: "\n"))
    }
    return part
  }

  /// Stores the part in a task of its own, because its reader has left.
  func storeInBackground() { Task.detached(priority: .utility) { await store() } }

  private func store() async {
    guard let writer else {
      if let data { cache.storeInMemory(data, part, replacing: []) }
      return
    }
    let isStored: Bool? = await cache.change(part.key) { await commit(writer) }
    // A store that hangs must not hold the bytes.
    if isStored != true { writer.abort() }
  }

  private func commit(_ writer: any EntryWriter) async -> Bool {
    guard cache.surviving(part) != nil, await ticket?.enter() ?? true else { return false }
    defer { ticket?.leave() }
    guard ticket?.followsAnother != true, let store = cache.request.store else { return false }
    do throws(CacheError) {
      // The request may not have looked up a response that is stored now. One that another process stores between this lookup and
      // the commit is replaced by the part.
      guard
        try await !store.variants(of: part.key.resource).contains(where: {
          $0.key == part.key && !Self.contains(part, Candidate(key: $0.key, metadata: $0.metadata))
        }),
        try await writer.commitPart(as: part.metadata) != nil
      else { return false }
      cache.request.commitOrder.noteCommit(of: part.key.resource)
      await cache.applyPurge(to: part)
      return true
    } catch {
      // The reader left while a chunk was being written.
      if error.code != .misuse { cache.request.observe(.storeFailed(key: part.key, error: error)) }
      return false
    }
  }
}

extension Candidate {
  /// The variant without the range of a part.
  var variantOfWhole: String { key.variant.split(separator: "\n").filter { !$0.hasPrefix("range=") }.joined(separator: "\n") }

  /// Whether the response is the part of a broken transfer, which has the key of the whole response. It must not come into
  /// memory, where that key is looked up for the whole response.
  var isPartUnderKeyOfWhole: Bool {
    metadata.response.status == .partialContent && key.variant == variantOfWhole
  }
}
