import CacheCore
import ETagValidation
import HTTPTypes

/// Fuzzes encoded metadata. Decoded metadata must survive encoding and decoding, and a truncated payload must be invalid. The
/// validator must accept it, with lengths, statuses and times that no server states.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzMetadata(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeBufferPointer(start: start, count: count)
  guard let metadata = StoredMetadata(decoding: bytes) else { return 0 }
  let written = metadata.encoded()
  // HTTPTypes treats a path of control characters alone as empty, and it is then encoded as absent.
  guard let again = StoredMetadata(decoding: written) else { preconditionFailure("decoded metadata cannot be encoded") }
  precondition(StoredMetadata(decoding: again.encoded()) == again)
  precondition(StoredMetadata(decoding: written.dropLast(1 + count % written.count)) == nil)
  precondition(metadata.bodyLength ?? 0 >= 0 && (200...999).contains(metadata.response.status.code))
  // A served response gets further fields.
  precondition(metadata.response.headerFields.count <= UInt16.max / 2)
  for mode in CacheMode.allCases {
    let validator = ETagValidator(mode: mode, parts: .completed, digestSecret: DigestSecret(high: 1, low: 2))
    for now in [Timestamp.distantPast, metadata.responseTime, metadata.freshness.freshUntil, .distantFuture] {
      use(metadata, validator, now)
    }
  }
  return 0
}

private func use(_ metadata: StoredMetadata, _ validator: ETagValidator, _ now: Timestamp) {
  var request = metadata.request
  request.headerFields[.range] = "bytes=1-2"
  let reply = validator.reply(to: request, from: metadata, now: now)
  if case .range(let range) = reply.content {
    precondition(range.lowerBound >= 0 && range.upperBound <= metadata.bodyLength ?? .max)
  }
  for policy in [LoadPolicy.standard, .staleWhileRevalidate, .cacheFirst] {
    guard case .fetch(let sent, let fallback, _) = validator.plan(request, policy: policy, stored: [metadata], now: now) else {
      continue
    }
    for status in [304, 206, 503] {
      let head = HTTPResponse(status: .init(code: status), headerFields: metadata.response.headerFields)
      let verdict = validator.judge(
        .success(head), to: request, sent: sent, fallback: fallback, stored: [metadata], requestTime: now, now: now,
        revision: Revision(high: 3, low: 4))
      if case .update(_, let updated, _) = verdict { precondition(updated.revision == metadata.revision) }
    }
  }
}
