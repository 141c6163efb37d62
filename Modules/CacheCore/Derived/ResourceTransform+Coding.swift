#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceTransform {
  /// An encoding of a value for a durable store.
  public struct Coding: Sendable {
    /// The name of the encoding, including its settings.
    public let id: String
    /// Returns whether the encoding can represent a value completely.
    public let canEncode: @Sendable (Value) -> Bool
    /// Encodes a value. It runs on no actor.
    public let encode: @Sendable (Value, StoredMetadata) throws(CacheError) -> Data
    /// Decodes an encoded value. The metadata is the original's. It runs on no actor.
    public let decode: @Sendable (Data, StoredMetadata) throws(CacheError) -> Value
  }

  /// Creates a transform from a decoder, processors, and an encoder that allows a durable store to store the value; see
  /// ``StoragePolicy``.
  ///
  /// ```swift
  /// let thumbnail = ResourceTransform(decoder: PhotoDecoder(), processors: [Resize(to: 400)], encoder: JPEG(quality: 0.8))
  /// ```
  ///
  /// With a lossy encoder, later loads receive the decoded copy. The loss occurs only once.
  ///
  /// - Parameters:
  ///   - decoder: Decodes the original's bytes.
  ///   - processors: Change the value, in this order.
  ///   - encoder: Encodes the value.
  ///   - restorer: Decodes the encoder's bytes, or `nil` to use `decoder` for them.
  public init<Decoder: ResourceDecoder<Value>>(
    decoder: Decoder, processors: [any ResourceProcessor<Value>] = [], encoder: any ResourceEncoder<Value>,
    restorer: (any ResourceDecoder<Value>)? = nil
  ) {
    let restorer = restorer ?? decoder
    let coding = Coding(
      id: "\(Self.step(encoder))|\(Self.step(restorer))", canEncode: { encoder.canEncode($0) },
      encode: { value, metadata throws(CacheError) in try encoder.encode(value, metadata) },
      decode: { data, metadata throws(CacheError) in try restorer.decode(data, metadata) })
    self = ResourceTransform(decoder: decoder, processors: processors).with(coding: coding)
  }

  /// Returns the transform with an encoding that allows a durable store to store the value; see ``StoragePolicy``.
  ///
  /// ```swift
  /// let words = ResourceTransform(decoder: UTF8Text()).map("upper") { $0.uppercased() }
  ///   .stored(as: "utf8") { Data($0.utf8) } decode: { String(decoding: $0, as: UTF8.self) }
  /// ```
  ///
  /// - Parameters:
  ///   - id: The name of the encoding, including its settings. It becomes part of the transform's ``id``.
  ///   - encode: Encodes a value, or throws ``CacheError/Code/encodingFailed``.
  ///   - decode: Decodes an encoded value. If it throws ``CacheError/Code/decodingFailed``, the stored bytes are removed and the
  ///     value is made again.
  public func stored(
    as id: String, encode: @escaping @Sendable (Value) throws(CacheError) -> Data,
    decode: @escaping @Sendable (Data) throws(CacheError) -> Value
  ) -> ResourceTransform {
    with(
      coding: Coding(
        id: id, canEncode: { _ in true }, encode: { value, _ throws(CacheError) in try encode(value) },
        decode: { data, _ throws(CacheError) in try decode(data) }))
  }
}
