#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// How bytes become a value: a decoder, then processors, step by step; and, where the value is worth keeping outside memory, how it becomes bytes again.
///
/// ```swift
/// let greeting = Form(decoder: UTF8Text()).map("upper") { $0.uppercased() }
/// let resource = try await manager.load(url, as: greeting)
/// ```
public struct Form<Value: Sendable>: Sendable {
  /// Makes a value of an original's bytes.
  public typealias Maker = @Sendable @concurrent (Body, StoredMetadata) async throws(CacheError) -> Value

  /// A step behind the first: it changes the value.
  package struct Change: Sendable {
    package let id: String
    package let apply: @Sendable (Value, StoredMetadata) throws(CacheError) -> Value
  }

  /// Made of the decoder, the processors and their parameters, and of what the value is kept as. Empty for the origin's bytes alone.
  public private(set) var id: String
  /// What a value weighs in memory, in bytes.
  public var cost: @Sendable (Value) -> Int
  /// How a value is kept in a durable store; nil: it is made of the original's bytes again.
  public private(set) var coding: Coding?
  private let firstID: String
  /// The first step.
  package let first: Maker
  /// Whether the first step is a decoder's, which waits for nothing.
  package let isFirstBounded: Bool
  /// How many bytes it takes for as long as it lasts.
  package let firstMemory: @Sendable (Data, StoredMetadata) -> Int
  /// The steps behind it.
  package private(set) var changes: [Change]

  /// A form of its parts. `id` tells it from every other form of the same resource, with all its parameters; it is not empty, since that is what ``bytes``
  /// has.
  ///
  /// - Parameters:
  ///   - id: the form's identity.
  ///   - cost: what a value weighs in memory, in bytes.
  ///   - make: makes the value. Runs on no actor.
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

  /// The same steps and more, kept as `coding` says.
  func with(_ more: [Change] = [], coding: Coding?) -> Form {
    var form = self
    form.changes += more
    form.coding = coding
    form.id = form.stem(form.changes.count) + (coding.map { "|=>\($0.id)" } ?? "")
    return form
  }

  /// A decoder, and processors applied to its value in order.
  public init<Decoder: ResourceDecoder<Value>>(
    decoder: Decoder, processors: [any ResourceProcessor<Value>] = []
  ) {
    let decoded = Form(
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

  /// What the form is up to one of its steps: also the identity of the form that ends there. Forms of equal stems share the work of them.
  ///
  /// - Parameter count: how many changes there are behind the first step.
  package func stem(_ count: Int) -> String { changes.prefix(count).reduce(firstID) { "\($0)|\($1.id)" } }

  /// Makes the value. Runs on no actor.
  @concurrent public func make(_ body: Body, _ metadata: StoredMetadata) async throws(CacheError) -> Value {
    var value = try await first(body, metadata)
    for change in changes { value = try change.apply(value, metadata) }
    return value
  }

  /// A component in text: its type's name (a full one names addresses for private types), and its parameters with their length, so that no two lists of steps read alike.
  static func step(_ component: any Component) -> String {
    let parameters = component.id.parameters
    return "\(String(describing: type(of: component)))#\(parameters.utf8.count):\(parameters)"
  }

  /// The same form with one more step; `id` names the step and its parameters.
  ///
  /// What the form is kept as, it is still kept as: the encoder gets the value behind the last step.
  public func map(
    _ id: String, _ transform: @escaping @Sendable (Value) throws(CacheError) -> Value
  ) -> Form {
    with([Change(id: id) { value, _ throws(CacheError) in try transform(value) }], coding: coding)
  }
}

extension Form where Value == Data {
  /// The origin's bytes, as they came.
  public static let bytes = Form(verbatim: "", cost: { $0.count }, isBounded: true) { body, _ throws(CacheError) in
    try await body.collect()
  }
}
