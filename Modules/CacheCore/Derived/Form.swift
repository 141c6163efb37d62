#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// How bytes become a value: a decoder and processors, folded into one witness.
///
/// ```swift
/// let greeting = Form(decoder: UTF8Text()).map("upper") { $0.uppercased() }
/// let resource = try await manager.load(url, as: greeting)
/// ```
public struct Form<Value: Sendable>: Sendable {
  /// Made of the decoder, the processors and their parameters. Empty for the origin's bytes alone.
  public var id: String
  /// What a value weighs in memory, in bytes.
  public var cost: @Sendable (Value) -> Int
  /// Makes the value. Runs on no actor.
  public var make: @Sendable @concurrent (Body, StoredMetadata) async throws(CacheError) -> Value

  /// A form of its parts; `id` must tell it from every other form of the same resource.
  public init(
    id: String, cost: @escaping @Sendable (Value) -> Int,
    make: @escaping @Sendable @concurrent (Body, StoredMetadata) async throws(CacheError) -> Value
  ) {
    self.id = id
    self.cost = cost
    self.make = make
  }

  /// A decoder, and processors applied to its value in order.
  public init<Decoder: ResourceDecoder<Value>>(
    decoder: Decoder, processors: [any ResourceProcessor<Value>] = []
  ) {
    let steps = [decoder.id.parameters] + processors.map { $0.id.parameters }
    self.init(
      id: steps.joined(separator: "|"),
      cost: { decoder.cost(of: $0) },
      make: { body, metadata throws(CacheError) in
        var value = try decoder.decode(try await body.collect(), metadata)
        for processor in processors { value = try processor.process(value, metadata) }
        return value
      })
  }

  /// The same form with one more step; `id` names the step and its parameters.
  public func map(
    _ id: String, _ transform: @escaping @Sendable (Value) throws(CacheError) -> Value
  ) -> Form {
    Form(id: "\(self.id)|\(id)", cost: cost) { [make] body, metadata throws(CacheError) in
      try transform(try await make(body, metadata))
    }
  }
}

extension Form where Value == Data {
  /// The origin's bytes, as they came.
  public static let bytes = Form(id: "", cost: { $0.count }) { body, _ throws(CacheError) in try await body.collect() }
}

/// Makes a value of bytes. Its ``Component/id``'s parameters become part of the cache key: they must name the decoder and its settings.
public protocol ResourceDecoder<Value>: Component {
  associatedtype Value: Sendable
  /// The value, or ``CacheError/Code/decodingFailed`` with the reason.
  func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> Value
  /// What a value weighs in memory, in bytes.
  func cost(of value: Value) -> Int
}

/// Changes a value. Its ``Component/id``'s parameters become part of the cache key: they must name the processor and its settings.
public protocol ResourceProcessor<Value>: Component {
  associatedtype Value: Sendable
  /// The changed value, or ``CacheError/Code/decodingFailed`` with the reason.
  func process(_ value: Value, _ metadata: StoredMetadata) throws(CacheError) -> Value
}
