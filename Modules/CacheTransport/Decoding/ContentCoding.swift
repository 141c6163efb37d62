#if ContentDecoding
internal import CacheCore
internal import HTTPTypes

/// A content coding that can be undone here (RFC 9110 §8.4.1).
enum ContentCoding: String, CaseIterable {
  case gzip
  case deflate
  #if canImport(Compression)
  case br
  #endif

  init?(name: some StringProtocol) {
    let name = name.lowercased()
    // RFC 9110 §8.4.1.3: an old name for the same.
    self.init(rawValue: name == "x-gzip" ? "gzip" : name)
  }

  /// What a request says that it takes: a `Accept-Encoding` field's value.
  static var accepted: String { allCases.map(\.rawValue).joined(separator: ", ") }

  /// The codings of a body, in the order in which they were applied. Empty: none, or at least one is unknown, so that nothing can
  /// be undone.
  ///
  /// - Throws: `CacheError.Code.damagedContentCoding` when they are more than `limit`: nobody codes so often but to exhaust who
  ///   decodes.
  static func codings(of fields: HTTPFields, limit: Int) throws(CacheError) -> [ContentCoding] {
    let names = fields[values: .contentEncoding].flatMap { $0.split(separator: ",") }
      .map { String(Substring($0.utf8.trimmingBlanks())) }
      .filter { !$0.isEmpty && $0.lowercased() != "identity" }
    var codings: [ContentCoding] = []
    for name in names {
      guard let coding = ContentCoding(name: name) else { return [] }
      codings.append(coding)
    }
    guard codings.count <= limit else {
      throw CacheError(
        .damagedContentCoding, reason: "the body has \(codings.count) content codings, one around the other; \(limit) are undone")
    }
    return codings
  }

  func makeDecoder() -> any ContentDecoder {
    switch self {
    case .gzip: Inflater(.gzip)
    case .deflate: Inflater(.deflate)
    #if canImport(Compression)
    case .br: BrotliDecoder()
    #endif
    }
  }
}
#endif
