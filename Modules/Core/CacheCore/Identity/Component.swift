private import Synchronization

/// The identity of a component. Requests may share work if their components have equal identities.
///
/// It is never an address: structs and closures have none, and addresses are reused after deallocation.
public struct ComponentID: Hashable, Sendable {
  private let metatype: Any.Type
  /// A text that includes every setting that affects the component's results.
  public let parameters: String

  /// Creates an identity. Components of the same type with equal `parameters` must produce equal results.
  public init(_ type: Any.Type, parameters: String = "") {
    metatype = type
    self.parameters = parameters
  }

  /// The component's type.
  public var type: ObjectIdentifier { ObjectIdentifier(metatype) }

  /// Returns an identity that is unique in this process, for components with closures or state.
  public static func unique(_ type: Any.Type) -> ComponentID {
    ComponentID(type, parameters: "#\(serial.wrappingAdd(1, ordering: .relaxed).newValue)")
  }

  private static let serial = Atomic<UInt64>(0)

  /// Returns whether two identities have the same type and equal parameters.
  public static func == (a: Self, b: Self) -> Bool { a.type == b.type && a.parameters == b.parameters }

  /// Hashes the type and the parameters.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(type)
    hasher.combine(parameters)
  }
}

extension ComponentID: CustomStringConvertible {
  /// The qualified name of the type, and the parameters: `CacheTransport.FileDownloader`, `MemoryStore.MemoryCache(#3)`.
  public var description: String {
    let name = String(reflecting: metatype)
    return parameters.isEmpty ? name : "\(name)(\(parameters))"
  }
}

/// A replaceable part of a load, such as a downloader, a store, a validator, a decoder or a processor.
public protocol Component: Sendable {
  /// The identity, which is equal for components that produce equal results; see ``ComponentID``.
  var id: ComponentID { get }
}

extension ComponentID {
  /// Creates the identity of a component that wraps another. Identities are equal if both the wrapper and the inner component
  /// are.
  ///
  /// The length of the parameters comes first, because two pairs of wrapper and inner component could otherwise have the same
  /// joined text.
  package init(_ type: Any.Type, _ parameters: String = "", around inner: ComponentID) {
    self.init(type, parameters: "\(parameters.utf8.count):\(parameters)|\(inner.type)|\(inner.parameters)")
  }
}
