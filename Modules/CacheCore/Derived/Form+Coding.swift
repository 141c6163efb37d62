#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Form {
  /// How a value is kept in a durable store: as which bytes, and how it is made of them again.
  public struct Coding: Sendable {
    /// Names the encoding with its settings.
    public let id: String
    /// Whether the bytes would hold all that is to be kept of a value.
    public let canEncode: @Sendable (Value) -> Bool
    /// The bytes of a value. Runs on no actor.
    public let encode: @Sendable (Value, StoredMetadata) throws(CacheError) -> Data
    /// The value of such bytes, whose metadata is the original's. Runs on no actor.
    public let decode: @Sendable (Data, StoredMetadata) throws(CacheError) -> Value
  }

  /// A decoder, processors applied to its value in order, and an encoder for what comes of it, so that a durable store can keep it: see ``StoragePolicy``.
  ///
  /// ```swift
  /// let thumbnail = Form(decoder: Pictures(), processors: [Resize(to: 400)], encoder: JPEG(quality: 0.8))
  /// ```
  ///
  /// The decoder also makes the value of the encoder's bytes. Where that takes another one, or where the value that was encoded is no longer quite the one that
  /// was made, that is what later loads get: an encoder with losses loses once.
  ///
  /// - Parameters:
  ///   - decoder: makes the value of the original's bytes.
  ///   - processors: change it, in this order.
  ///   - encoder: makes bytes of the value.
  ///   - restorer: makes the value of the encoder's bytes; nil: `decoder` does.
  public init<Decoder: ResourceDecoder<Value>>(
    decoder: Decoder, processors: [any ResourceProcessor<Value>] = [], encoder: any ResourceEncoder<Value>,
    restorer: (any ResourceDecoder<Value>)? = nil
  ) {
    let restorer = restorer ?? decoder
    let coding = Coding(
      id: "\(Self.step(encoder))|\(Self.step(restorer))", canEncode: { encoder.canEncode($0) },
      encode: { value, metadata throws(CacheError) in try encoder.encode(value, metadata) },
      decode: { data, metadata throws(CacheError) in try restorer.decode(data, metadata) })
    self = Form(decoder: decoder, processors: processors).with(coding: coding)
  }

  /// The same form, whose values a durable store can keep as bytes: see ``StoragePolicy``.
  ///
  /// ```swift
  /// let words = Form(decoder: UTF8Text()).map("upper") { $0.uppercased() }
  ///   .stored(as: "utf8") { Data($0.utf8) } decode: { String(decoding: $0, as: UTF8.self) }
  /// ```
  ///
  /// - Parameters:
  ///   - id: names the encoding with its settings; it becomes part of the form's ``id``.
  ///   - encode: makes bytes of a value, or throws ``CacheError/Code/encodingFailed``.
  ///   - decode: makes the value of such bytes, or throws ``CacheError/Code/decodingFailed``: then they are removed, and the value is made anew.
  public func stored(
    as id: String, encode: @escaping @Sendable (Value) throws(CacheError) -> Data,
    decode: @escaping @Sendable (Data) throws(CacheError) -> Value
  ) -> Form {
    with(
      coding: Coding(
        id: id, canEncode: { _ in true }, encode: { value, _ throws(CacheError) in try encode(value) },
        decode: { data, _ throws(CacheError) in try decode(data) }))
  }
}
