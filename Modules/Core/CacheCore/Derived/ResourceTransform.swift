#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A description of how the bytes of a response become a value: a decoder, followed by processors. It can also describe how a
/// durable store encodes the value.
///
/// ```swift
/// let greeting = ResourceTransform(decoder: UTF8Text()).map("upper") { $0.uppercased() }
/// let resource = try await manager.load(url, as: greeting)
/// ```
public struct ResourceTransform<Value: Sendable>: Sendable {
  /// A function that makes a value from the original bytes.
  public typealias Maker = @Sendable @concurrent (ResourceBody, StoredMetadata) async throws(CacheError) -> Value

  /// A step after the first one, which changes the value.
  package struct Change: Sendable {
    package let id: String
    package let apply: @Sendable (Value, StoredMetadata) throws(CacheError) -> Value
  }

  /// The identity of the transform: the names and parameters of its decoder, processors and encoder. The identity of ``bytes`` is
  /// empty.
  public private(set) var id: String
  /// Returns the cost of a value in memory, in bytes.
  public var cost: @Sendable (Value) -> Int
  /// The encoding for a durable store, or `nil` if only the original is stored.
  public private(set) var coding: Coding?
  private let firstID: String
  /// The first step.
  package let first: Maker
  /// Whether the first step is a decoder, which does not suspend.
  package let isFirstBounded: Bool
  /// Returns the bytes of memory that the first step needs while it runs.
  package let firstMemory: @Sendable (Data, StoredMetadata) -> Int
  /// The steps after the first.
  package private(set) var changes: [Change]

  /// Creates a transform from closures, which it retains.
  ///
  /// - Parameters:
  ///   - id: The identity of the transform. It must differ from the `id` of every other transform of the same resource, so it
  ///     includes all parameters. An empty string is replaced, because it is the `id` of ``bytes``.
  ///   - cost: Returns the cost of a value in memory, in bytes.
  ///   - make: Makes the value. It runs on no actor.
  public init(id: String, cost: @escaping @Sendable (Value) -> Int, make: @escaping Maker) {
    self.init(verbatim: id.isEmpty ? "unnamed" : id, cost: cost, isBounded: false, make: make)
  }

  private init(
    verbatim id: String, cost: @escaping @Sendable (Value) -> Int, isBounded: Bool,
    memory: @escaping @Sendable (Data, StoredMetadata) -> Int = { _, _ in 0 }, make: @escaping Maker
  ) {
    self.id = id
    self.cost = cost
    firstID = id
    first = make
    isFirstBounded = isBounded
    firstMemory = memory
    changes = []
  }

  /// Returns the transform with additional steps and the given encoding.
  func with(_ more: [Change] = [], coding: Coding?) -> ResourceTransform {
    var transform = self
    transform.changes += more
    transform.coding = coding
    transform.id = transform.stem(transform.changes.count) + (coding.map { "|=>\($0.id)" } ?? "")
    return transform
  }

  /// Creates a transform from a decoder and from processors, which are applied to the decoded value in order.
  public init<Decoder: ResourceDecoder<Value>>(decoder: Decoder, processors: [any ResourceProcessor<Value>] = []) {
    let decoded = ResourceTransform(
      verbatim: Self.step(decoder), cost: { decoder.cost(of: $0) }, isBounded: true,
      memory: { decoder.workingMemory(for: $0, $1) }
    ) { body, metadata throws(CacheError) in
      try decoder.decode(try await body.collect(), metadata)
    }
    let changes = processors.map { processor in
      Change(id: Self.step(processor)) { value, metadata throws(CacheError) in try processor.process(value, metadata) }
    }
    self = decoded.with(changes, coding: nil)
  }

  /// Returns the identity of the first step and the next `count` changes. Loads whose transforms have an equal stem share its
  /// work.
  package func stem(_ count: Int) -> String { changes.prefix(count).reduce(firstID) { "\($0)|\($1.id)" } }

  /// Returns the value that the transform makes from the bytes of a response. It runs on no actor.
  @concurrent public func make(_ body: ResourceBody, _ metadata: StoredMetadata) async throws(CacheError) -> Value {
    var value = try await first(body, metadata)
    for change in changes { value = try change.apply(value, metadata) }
    return value
  }

  /// Returns a component's type name and its parameters, with the length of the parameters, so that different lists of steps have
  /// different texts. The name is not the full one, because full names of private types contain addresses.
  static func step(_ component: any Component) -> String {
    let parameters = component.id.parameters
    return "\(String(describing: type(of: component)))#\(parameters.utf8.count):\(parameters)"
  }

  /// Returns the transform with one more step, which does not change the type of the value. An existing encoding remains and
  /// encodes the value after the new step.
  ///
  /// - Parameters:
  ///   - id: The name of the step, with its parameters.
  ///   - change: Makes the new value.
  public func map(_ id: String, _ change: @escaping @Sendable (Value) throws(CacheError) -> Value) -> ResourceTransform {
    with([Change(id: id) { value, _ throws(CacheError) in try change(value) }], coding: coding)
  }
}

extension ResourceTransform where Value == Data {
  /// The bytes of the response, unchanged.
  public static let bytes = ResourceTransform(verbatim: "", cost: { $0.count }, isBounded: true) { body, _ throws(CacheError) in
    try await body.collect()
  }
}

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

/// Decodes bytes into a value.
///
/// ```swift
/// struct Lines: ResourceDecoder {
///   let id = ComponentID(Lines.self)
///
///   func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> [String] {
///     String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
///   }
///
///   func cost(of value: [String]) -> Int { value.reduce(0) { $0 + $1.utf8.count } }
/// }
/// let lines = try await manager.load(url, as: ResourceTransform(decoder: Lines())).value
/// ```
///
/// The name of the type and the parameters of its ``Component/id`` become part of the cache key, so the parameters must include
/// every setting.
public protocol ResourceDecoder<Value>: Component {
  /// The type of the decoded value.
  associatedtype Value: Sendable
  /// Returns the decoded value.
  ///
  /// - Throws: ``CacheError/Code/decodingFailed`` with the reason.
  func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> Value
  /// Returns the memory cost of a value, in bytes.
  func cost(of value: Value) -> Int
  /// Returns the additional memory that decoding `data` needs while it runs, including the value, in bytes.
  ///
  /// A manager limits concurrent decoding so that the sum stays within its memory budget. The default is 0.
  func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int
}

extension ResourceDecoder {
  public func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int { 0 }
}

/// Changes a value.
///
/// The name of the type and the parameters of its ``Component/id`` become part of the cache key, so the parameters must include
/// every setting.
public protocol ResourceProcessor<Value>: Component {
  /// The type of the value.
  associatedtype Value: Sendable
  /// Returns the changed value.
  ///
  /// - Throws: ``CacheError/Code/decodingFailed`` with the reason.
  func process(_ value: Value, _ metadata: StoredMetadata) throws(CacheError) -> Value
}

/// Encodes a value into bytes for a durable store.
///
/// The name of the type and the parameters of its ``Component/id`` become part of the cache key, so the parameters must include
/// every setting.
public protocol ResourceEncoder<Value>: Component {
  /// The type of the encoded value.
  associatedtype Value: Sendable
  /// Returns whether the encoded bytes can represent `value` completely. The default is `true`.
  ///
  /// A value that cannot be encoded is never stored. Its original is stored instead, whatever the ``StoragePolicy``.
  func canEncode(_ value: Value) -> Bool
  /// Returns bytes that a decoder can decode into the value again.
  ///
  /// - Parameters:
  ///   - value: The value to encode.
  ///   - metadata: The metadata of the original.
  /// - Throws: ``CacheError/Code/encodingFailed`` with the reason.
  func encode(_ value: Value, _ metadata: StoredMetadata) throws(CacheError) -> Data
}

extension ResourceEncoder {
  public func canEncode(_ value: Value) -> Bool { true }
}
