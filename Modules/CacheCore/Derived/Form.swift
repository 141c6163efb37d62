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

  /// A form of its parts. `id` tells it from every other form of the same resource, with all its parameters; it is not empty, since that is what ``bytes``
  /// has.
  public init(
    id: String, cost: @escaping @Sendable (Value) -> Int,
    make: @escaping @Sendable @concurrent (Body, StoredMetadata) async throws(CacheError) -> Value
  ) {
    self.init(verbatim: id.isEmpty ? "unnamed" : id, cost: cost, make: make)
  }

  private init(
    verbatim id: String, cost: @escaping @Sendable (Value) -> Int,
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
    let steps = [Self.step(decoder)] + processors.map { Self.step($0) }
    self.init(
      id: steps.joined(separator: "|"),
      cost: { decoder.cost(of: $0) },
      make: { body, metadata throws(CacheError) in
        var value = try decoder.decode(try await body.collect(), metadata)
        for processor in processors { value = try processor.process(value, metadata) }
        return value
      })
  }

  /// A component in text: its type's name (a full one names addresses for private types), and its parameters with their length, so that no two lists of steps read alike.
  private static func step(_ component: any Component) -> String {
    let parameters = component.id.parameters
    return "\(String(describing: type(of: component)))#\(parameters.utf8.count):\(parameters)"
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
  public static let bytes = Form(verbatim: "", cost: { $0.count }) { body, _ throws(CacheError) in try await body.collect() }
}

/// Makes a value of bytes. Its type's name and its ``Component/id``'s parameters become part of the cache key: the parameters must name every setting.
public protocol ResourceDecoder<Value>: Component {
  associatedtype Value: Sendable
  /// The value, or ``CacheError/Code/decodingFailed`` with the reason.
  func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> Value
  /// What a value weighs in memory, in bytes.
  func cost(of value: Value) -> Int
}

/// Changes a value. Its type's name and its ``Component/id``'s parameters become part of the cache key: the parameters must name every setting.
public protocol ResourceProcessor<Value>: Component {
  associatedtype Value: Sendable
  /// The changed value, or ``CacheError/Code/decodingFailed`` with the reason.
  func process(_ value: Value, _ metadata: StoredMetadata) throws(CacheError) -> Value
}
