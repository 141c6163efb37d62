// Stand-ins for public names of SwiftUI, UIKit, Foundation, Combine and Swift Testing, which a file of an app may
// import beside Etagere.

/// A stand-in for `SwiftUI.Form`.
public struct Form { public init() {} }
/// A stand-in for `SwiftUI.View.Body`.
public struct Body { public init() {} }
/// A stand-in for `SwiftUI.Image`.
public struct Image { public init() {} }
/// A stand-in for `SwiftUI.Transaction`.
public struct Transaction { public init() {} }
/// A stand-in for `SwiftUI.Layout`.
public protocol Layout {}
/// A stand-in for `SwiftUI.Section`.
public struct Section { public init() {} }
/// A stand-in for `SwiftUI.Label`.
public struct Label { public init() {} }
/// A stand-in for `SwiftUI.Link`.
public struct Link { public init() {} }
/// A stand-in for `SwiftUI.State`.
@propertyWrapper public struct State<Value> {
  public var wrappedValue: Value
  public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
}
/// A stand-in for `SwiftUI.Binding`.
public struct Binding<Value> {
  public var value: Value
  public init(_ value: Value) { self.value = value }
}
/// A stand-in for `SwiftUI.Environment`.
public struct Environment { public init() {} }
/// A stand-in for `Combine.Publisher`.
public protocol Publisher {}
/// A stand-in for `Combine.Subscription`.
public protocol Subscription {}
/// A stand-in for `Testing.Trait`.
public protocol Trait {}
/// A stand-in for `Testing.Test`.
public struct Test { public init() {} }
