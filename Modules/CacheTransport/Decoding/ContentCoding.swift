#if ContentDecoding
internal import CacheCore
internal import HTTPTypes

/// A content coding that this module can decode (RFC 9110 §8.4.1).
enum ContentCoding: String, CaseIterable {
  case gzip
  case deflate
  #if canImport(Compression)
  case br
  #endif

  init?(name: some StringProtocol) {
    let name = name.lowercased()
    // An old name for gzip (RFC 9110 §8.4.1.3).
    self.init(rawValue: name == "x-gzip" ? "gzip" : name)
  }

  /// The value of a request's `Accept-Encoding` field.
  static var accepted: String { allCases.map(\.rawValue).joined(separator: ", ") }

  /// Returns the codings of a body in the order in which they were applied. Returns an empty array if there are none or if one is
  /// unknown, because then none can be decoded.
  ///
  /// - Throws: `CacheError.Code.damagedContentCoding` if there are more than `limit`. Such a body is an attack on the decoder.
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
        .damagedContentCoding, reason: "the body has \(codings.count) content codings; the limit is \(limit)")
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
