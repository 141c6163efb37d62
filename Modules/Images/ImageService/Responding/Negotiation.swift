#if Service
internal import CacheCore
internal import HTTPTypes
internal import ImageCodecs

extension ImageOperations {
  /// Operations in which everything that depended on the client is decided.
  struct Negotiated {
    var operations: ImageOperations
    var format: ImageFormat
    /// The names of the request's fields that decided, for `Vary`.
    var decisive: [String]
  }

  /// Decides the format, the pixel ratio and the width from the fields of a request.
  ///
  /// A stated width is rounded up, so that a client cannot cause a result for each number.
  func negotiated(with fields: HTTPFields, formats: [ImageFormat], maximumSide: Int) -> Negotiated {
    if isOriginal { return Negotiated(operations: self, format: .jpeg, decisive: []) }
    var decisive: [String] = []
    var operations = self
    let ratio: Double
    if let pixelRatio {
      ratio = pixelRatio
    } else {
      decisive += ClientHint.pixelRatio
      let stated = ClientHint.number(ClientHint.pixelRatio, in: fields) ?? 1
      // In halves, up to the largest ratio that a URL can state.
      ratio = min(max((stated * 2).rounded(.up) / 2, 1), 4)
    }
    operations = operations.scaled(by: ratio, maximumSide: maximumSide)
    operations.pixelRatio = 1
    if let clientWidth {
      decisive += ClientHint.width
      let stated = ClientHint.number(ClientHint.width, in: fields).map { number in
        min(Int((min(max(number, 1), 65_535) / ClientHint.step).rounded(.up) * ClientHint.step), maximumSide)
      }
      let fallback = clientWidth.fallback.map { min(Int((Double($0) * ratio).rounded()), maximumSide) }
      if let width = stated ?? fallback {
        operations.steps.insert(.resize(.width(width), enlarges: false), at: clientWidth.index)
      }
      operations.clientWidth = nil
    }
    switch format {
    case .fixed(let format): return Negotiated(operations: operations, format: format, decisive: decisive)
    case .automatic:
      let accepted = AcceptedTypes(fields[values: .accept])
      let format = formats.first { accepted.contains($0.mediaType) } ?? .jpeg
      return Negotiated(operations: operations, format: format, decisive: decisive + ["Accept"])
    }
  }
}

/// The header fields in which a client states the size that it needs (Client Hints, RFC 8942), by their present and former names.
enum ClientHint {
  static let width = ["Sec-CH-Width", "Width"]
  static let pixelRatio = ["Sec-CH-DPR", "DPR"]
  /// The steps of stated widths, in pixels.
  static let step = 80.0

  static func number(_ names: [String], in fields: HTTPFields) -> Double? {
    for name in names.compactMap({ HTTPField.Name($0) }) {
      if let number = fields[name].flatMap(Double.init), number.isFinite, number > 0 { return number }
    }
    return nil
  }
}

/// The media types that an `Accept` field names (RFC 9110 §12.5.1).
///
/// Ranges such as `image/*` do not count, because clients that send them cannot read every newer format.
struct AcceptedTypes {
  private let types: Set<String>

  init(_ values: [String]) {
    var types: Set<String> = []
    for range in values.flatMap({ $0.utf8.split(separator: UInt8(ascii: ",")) }) {
      let parts = range.split(separator: UInt8(ascii: ";")).map { Substring($0.trimmingBlanks()).lowercased() }
      guard let type = parts.first, type.hasPrefix("image/") else { continue }
      let quality = parts.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
      if quality > 0 { types.insert(type) }
    }
    self.types = types
  }

  func contains(_ type: String) -> Bool { types.contains(type) }
}
#endif
