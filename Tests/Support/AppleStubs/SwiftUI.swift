// swift-format-ignore-file: AlwaysUseLowerCamelCase

@_exported public import AppleFoundation
// Declarations of SwiftUI. Those of the views and modifiers that CacheUI uses also build a tree, in which the program ViewTree
// beside this file lets views appear.
//
// Source: Apple's documentation of SwiftUI (iOS 18 SDK), and for attributes that it leaves out the declarations of OpenSwiftUI
// 6.0.87, which is modelled on that SDK. "task(id:)" has the form of iOS 18. That of the SDK in Xcode 26 accepts more closures.
@_exported public import CoreGraphics
public import Observation

// MARK: The tree of views, which is not part of SwiftUI

/// A view on the screen, with the actions of its appearance.
public struct _Node {
  public var appear: [() -> Void] = []
}

/// A view that has no body.
@MainActor @preconcurrency
public protocol _SystemView {
  var _nodes: [_Node] { get }
}

@MainActor
public func _nodes<Content: View>(of view: Content) -> [_Node] {
  if let view = view as? any _SystemView { return view._nodes }
  return _nodes(of: view.body)
}

/// Content with an action for each of its views. SwiftUI also applies a modifier to each view.
struct _Modified<Content: View>: View, _SystemView {
  nonisolated(unsafe) let content: Content
  nonisolated(unsafe) let environment: (inout EnvironmentValues) -> Void
  nonisolated(unsafe) let appear: (() -> Void)?
  var body: Never { fatalError() }

  nonisolated init(
    content: Content, environment: @escaping (inout EnvironmentValues) -> Void = { _ in }, appear: (() -> Void)? = nil
  ) {
    self.content = content
    self.environment = environment
    self.appear = appear
  }

  var _nodes: [_Node] {
    let former = EnvironmentValues._current
    environment(&EnvironmentValues._current)
    defer { EnvironmentValues._current = former }
    return SwiftUI._nodes(of: content).map { _Node(appear: $0.appear + (appear.map { [$0] } ?? [])) }
  }
}

// MARK: Views

@MainActor @preconcurrency
public protocol View {
  associatedtype Body: View
  @ViewBuilder @MainActor @preconcurrency var body: Body { get }
}

extension Never: View {
  public var body: Never { fatalError() }
}

extension Optional: View, _SystemView where Wrapped: View {
  public var body: Never { fatalError() }
  public var _nodes: [_Node] { map { SwiftUI._nodes(of: $0) } ?? [] }
}

public struct EmptyView: View, _SystemView {
  nonisolated public init() {}
  public var body: Never { fatalError() }
  public var _nodes: [_Node] { [] }
}

public struct _ConditionalContent<TrueContent: View, FalseContent: View>: View, _SystemView {
  enum Storage {
    case first(TrueContent)
    case second(FalseContent)
  }

  nonisolated(unsafe) let storage: Storage
  nonisolated init(storage: Storage) { self.storage = storage }
  public var body: Never { fatalError() }
  public var _nodes: [_Node] {
    switch storage {
    case .first(let content): SwiftUI._nodes(of: content)
    case .second(let content): SwiftUI._nodes(of: content)
    }
  }
}

@resultBuilder
public struct ViewBuilder {
  public static func buildBlock() -> EmptyView { EmptyView() }
  public static func buildBlock<Content: View>(_ content: Content) -> Content { content }
  public static func buildBlock<each Content: View>(_ content: repeat each Content) -> TupleView<(repeat each Content)> {
    var views: [any View] = []
    for view in repeat each content { views.append(view) }
    return TupleView((repeat each content), views)
  }
  public static func buildExpression<Content: View>(_ content: Content) -> Content { content }
  public static func buildIf<Content: View>(_ content: Content?) -> Content? { content }
  public static func buildEither<First: View, Second: View>(first: First) -> _ConditionalContent<First, Second> {
    _ConditionalContent(storage: .first(first))
  }
  public static func buildEither<First: View, Second: View>(second: Second) -> _ConditionalContent<First, Second> {
    _ConditionalContent(storage: .second(second))
  }
}

public struct TupleView<T>: View, _SystemView {
  private nonisolated(unsafe) let views: [any View]
  nonisolated public init(_ value: T) { fatalError() }
  nonisolated init(_ value: T, _ views: [any View]) { self.views = views }
  public var body: Never { fatalError() }
  public var _nodes: [_Node] { views.flatMap { SwiftUI._nodes(of: $0) } }
}

@MainActor @preconcurrency public protocol Shape: Sendable, View {}

public struct Circle: Shape {
  nonisolated public init() { fatalError() }
  public nonisolated var body: Never { fatalError() }
}

extension Shape where Self == Circle {
  public static var circle: Circle { fatalError() }
}

public struct FillStyle: Equatable, Sendable {
  nonisolated public init(eoFill: Bool = false, antialiased: Bool = true) { fatalError() }
}

extension View {
  nonisolated public func clipped(antialiased: Bool = false) -> some View { EmptyView() }
  nonisolated public func clipShape<S: Shape>(_ shape: S, style: FillStyle = FillStyle()) -> some View { EmptyView() }
}

public struct LocalizedStringKey: Equatable, ExpressibleByStringInterpolation {
  public init(_ value: String) {}
  public init(stringLiteral value: String) {}
}

public struct Text: View {
  // For a literal, this initializer is preferred to the one for strings.
  public init(_ key: LocalizedStringKey, tableName: String? = nil, bundle: Bundle? = nil, comment: StaticString? = nil) {
    fatalError()
  }
  @_disfavoredOverload public init<S: StringProtocol>(_ content: S) { fatalError() }
  public init(verbatim content: String) { fatalError() }
  public var body: Never { fatalError() }
}

public struct Color: View, _SystemView, Hashable, Sendable {
  public static let gray = Color()
  public static let clear = Color()
  public func opacity(_ opacity: Double) -> Color { self }
  public nonisolated var body: Never { fatalError() }
  public var _nodes: [_Node] { [_Node()] }
}

public struct Image: View, _SystemView, Equatable, Sendable {
  public nonisolated init(_ cgImage: CGImage, scale: CGFloat, label: Text) { fatalError() }
  public nonisolated init(decorative cgImage: CGImage, scale: CGFloat) { fatalError() }
  public enum TemplateRenderingMode: Hashable, Sendable { case template, original }
  public nonisolated func renderingMode(_ renderingMode: TemplateRenderingMode?) -> Image { fatalError() }
  public nonisolated var body: Never { fatalError() }
  public var _nodes: [_Node] { [_Node()] }
}

extension Image {
  public enum ResizingMode: Sendable { case tile, stretch }
  public nonisolated init(systemName: String) { fatalError() }
  public nonisolated func resizable(capInsets: EdgeInsets = EdgeInsets(), resizingMode: ResizingMode = .stretch) -> Image {
    fatalError()
  }
}

public struct EdgeInsets: Equatable, Sendable {
  nonisolated public init() {}
}

public struct ProgressView: View {
  nonisolated public init() { fatalError() }
  nonisolated public init<V: BinaryFloatingPoint>(value: V?, total: V = 1.0) { fatalError() }
  public var body: Never { fatalError() }
}

public struct Label<Title: View, Icon: View>: View {
  nonisolated public init(@ViewBuilder title: () -> Title, @ViewBuilder icon: () -> Icon) { fatalError() }
  public var body: Never { fatalError() }
}

public struct Button<Label: View>: View {
  @preconcurrency nonisolated public init(action: @escaping @MainActor () -> Void, @ViewBuilder label: () -> Label) {
    fatalError()
  }
  public var body: Never { fatalError() }
}

extension Button where Label == Text {
  @preconcurrency nonisolated public init(_ titleKey: LocalizedStringKey, action: @escaping @MainActor () -> Void) {
    fatalError()
  }
  @_disfavoredOverload @preconcurrency
  nonisolated public init<S: StringProtocol>(_ title: S, action: @escaping @MainActor () -> Void) { fatalError() }
}

extension Button where Label == SwiftUI.Label<Text, Image> {
  @preconcurrency
  nonisolated public init(_ titleKey: LocalizedStringKey, systemImage: String, action: @escaping @MainActor () -> Void) {
    fatalError()
  }
}

extension Text {
  public func font(_ font: Font?) -> Text { fatalError() }
}

public struct Font: Hashable, Sendable {
  public enum TextStyle: CaseIterable, Sendable { case body, caption }
  public enum Design: Hashable, Sendable { case `default`, monospaced }
  public enum Weight: Hashable, Sendable { case regular }
  public static func system(_ style: TextStyle, design: Design? = nil, weight: Weight? = nil) -> Font { fatalError() }
}

public struct TextField<Label: View>: View {
  nonisolated public init(_ titleKey: LocalizedStringKey, text: Binding<String>) where Label == Text { fatalError() }
  @_disfavoredOverload
  nonisolated public init<S: StringProtocol>(_ title: S, text: Binding<String>) where Label == Text { fatalError() }
  public var body: Never { fatalError() }
}

public struct Slider<Label: View, ValueLabel: View>: View {
  public var body: Never { fatalError() }
}

extension Slider where ValueLabel == EmptyView {
  nonisolated public init<V: BinaryFloatingPoint>(
    value: Binding<V>, in bounds: ClosedRange<V>, step: V.Stride = 1, @ViewBuilder label: () -> Label,
    onEditingChanged: @escaping (Bool) -> Void = { _ in }
  ) where V.Stride: BinaryFloatingPoint { fatalError() }
}

public enum AsyncImagePhase: Sendable {
  case empty
  case success(Image)
  case failure(any Error)
  public var image: Image? { fatalError() }
  public var error: (any Error)? { fatalError() }
}

public struct AsyncImage<Content: View>: View {
  nonisolated public init(url: URL?, scale: CGFloat = 1) where Content == Image { fatalError() }
  nonisolated public init<I: View, P: View>(
    url: URL?, scale: CGFloat = 1, @ViewBuilder content: @escaping (Image) -> I, @ViewBuilder placeholder: @escaping () -> P
  ) where Content == _ConditionalContent<I, P> { fatalError() }
  nonisolated public init(
    url: URL?, scale: CGFloat = 1, transaction: Transaction = Transaction(),
    @ViewBuilder content: @escaping (AsyncImagePhase) -> Content
  ) { fatalError() }
  public var body: Never { fatalError() }
}

public struct GeometryProxy {
  public var size: CGSize { CGSize(width: 100, height: 50) }
}

public struct GeometryReader<Content: View>: View, _SystemView {
  private let content: (GeometryProxy) -> Content
  public init(@ViewBuilder content: @escaping (GeometryProxy) -> Content) { self.content = content }
  public var body: Never { fatalError() }
  public var _nodes: [_Node] { [_Node(appear: SwiftUI._nodes(of: content(GeometryProxy())).flatMap(\.appear))] }
}

// MARK: Containers

public enum HorizontalAlignment: Sendable { case center }
public enum VerticalAlignment: Sendable { case center }

public struct Axis {
  public struct Set: OptionSet, Sendable {
    public let rawValue: Int8
    public init(rawValue: Int8) { self.rawValue = rawValue }
    public static let horizontal = Set(rawValue: 1)
    public static let vertical = Set(rawValue: 2)
  }
}

public struct HStack<Content: View>: View {
  nonisolated public init(
    alignment: VerticalAlignment = .center, spacing: CGFloat? = nil, @ViewBuilder content: () -> Content
  ) { fatalError() }
  public var body: Never { fatalError() }
}

public struct VStack<Content: View>: View {
  nonisolated public init(
    alignment: HorizontalAlignment = .center, spacing: CGFloat? = nil, @ViewBuilder content: () -> Content
  ) { fatalError() }
  public var body: Never { fatalError() }
}

public struct ZStack<Content: View>: View, _SystemView {
  private nonisolated(unsafe) let content: Content
  nonisolated public init(alignment: Alignment = .center, @ViewBuilder content: () -> Content) { self.content = content() }
  public var body: Never { fatalError() }
  public var _nodes: [_Node] { [_Node(appear: SwiftUI._nodes(of: content).flatMap(\.appear))] }
}

/// A group has no view of its own: its views are those of its content.
public struct Group<Content> {
  private nonisolated(unsafe) let content: Content
}

extension Group: View, _SystemView where Content: View {
  nonisolated public init(@ViewBuilder content: () -> Content) { self.content = content() }
  public var body: Never { fatalError() }
  public var _nodes: [_Node] { SwiftUI._nodes(of: content) }
}

public struct ScrollView<Content: View>: View {
  nonisolated public init(
    _ axes: Axis.Set = .vertical, showsIndicators: Bool = true, @ViewBuilder content: () -> Content
  ) { fatalError() }
  public var body: Never { fatalError() }
}

public struct ForEach<Data: RandomAccessCollection, ID: Hashable, Content> {}

extension ForEach: View where Content: View {
  public var body: Never { fatalError() }
}

extension ForEach where ID == Data.Element.ID, Content: View, Data.Element: Identifiable {
  nonisolated public init(_ data: Data, @ViewBuilder content: @escaping (Data.Element) -> Content) { fatalError() }
}

public struct List<SelectionValue: Hashable, Content: View>: View {
  public var body: Never { fatalError() }
}

extension List where SelectionValue == Never {
  nonisolated public init<Data: RandomAccessCollection, RowContent: View>(
    _ data: Data, @ViewBuilder rowContent: @escaping (Data.Element) -> RowContent
  ) where Content == ForEach<Data, Data.Element.ID, RowContent>, Data.Element: Identifiable { fatalError() }
}

public struct Picker<Label: View, SelectionValue: Hashable, Content: View>: View {
  public var body: Never { fatalError() }
}

extension Picker where Label == Text {
  nonisolated public init(
    _ titleKey: LocalizedStringKey, selection: Binding<SelectionValue>, @ViewBuilder content: () -> Content
  ) { fatalError() }
  @_disfavoredOverload
  nonisolated public init<S: StringProtocol>(
    _ title: S, selection: Binding<SelectionValue>, @ViewBuilder content: () -> Content
  ) { fatalError() }
}

@MainActor @preconcurrency public protocol PickerStyle {}

public struct SegmentedPickerStyle: PickerStyle {
  nonisolated public init() {}
}

extension PickerStyle where Self == SegmentedPickerStyle {
  @MainActor @preconcurrency public static var segmented: SegmentedPickerStyle { fatalError() }
}

public struct NavigationPath {}

public struct NavigationStack<Data, Root: View>: View {
  nonisolated public init(@ViewBuilder root: () -> Root) where Data == NavigationPath { fatalError() }
  public var body: Never { fatalError() }
}

// MARK: Apps

@MainActor @preconcurrency
public protocol Scene {
  associatedtype Body: Scene
  @SceneBuilder @MainActor @preconcurrency var body: Body { get }
}

extension Never: Scene {}

@resultBuilder
public struct SceneBuilder {
  public static func buildBlock<Content: Scene>(_ content: Content) -> Content { fatalError() }
  public static func buildExpression<Content: Scene>(_ content: Content) -> Content { fatalError() }
}

public struct WindowGroup<Content: View>: Scene {
  nonisolated public init(_ titleKey: LocalizedStringKey, @ViewBuilder content: () -> Content) { fatalError() }
  @_disfavoredOverload
  nonisolated public init<S: StringProtocol>(_ title: S, @ViewBuilder content: () -> Content) { fatalError() }
  public var body: Never { fatalError() }
}

@MainActor @preconcurrency
public protocol App {
  associatedtype Body: Scene
  @SceneBuilder @MainActor @preconcurrency var body: Body { get }
  @MainActor @preconcurrency init()
}

extension App {
  @MainActor @preconcurrency public static func main() { fatalError() }
}

// MARK: State

public protocol DynamicProperty {}

@propertyWrapper
public struct State<Value>: DynamicProperty {
  private final class Storage {
    var value: Value
    init(_ value: Value) { self.value = value }
  }

  private let storage: Storage
  public init(wrappedValue: Value) { storage = Storage(wrappedValue) }
  public init(initialValue value: Value) { storage = Storage(value) }
  public var wrappedValue: Value {
    get { storage.value }
    nonmutating set { storage.value = newValue }
  }
  public var projectedValue: Binding<Value> { fatalError() }
}

// Proof of `@unchecked Sendable`: SwiftUI's own state is Sendable with such a value. ViewTree uses it on the main actor.
extension State: @unchecked Sendable where Value: Sendable {}

@propertyWrapper @dynamicMemberLookup
public struct Binding<Value> {
  @preconcurrency
  public init(
    get: @escaping @isolated(any) @Sendable () -> Value, set: @escaping @isolated(any) @Sendable (Value) -> Void
  ) { fatalError() }
  public var wrappedValue: Value {
    get { fatalError() }
    nonmutating set { fatalError() }
  }
  public var projectedValue: Binding<Value> { fatalError() }
  public subscript<Subject>(dynamicMember keyPath: WritableKeyPath<Value, Subject>) -> Binding<Subject> { fatalError() }
}

@propertyWrapper @dynamicMemberLookup
public struct Bindable<Value> {
  public var wrappedValue: Value
  @available(*, unavailable, message: "The wrapped value must be an object that conforms to Observable")
  public init(wrappedValue: Value) { fatalError() }
  public var projectedValue: Bindable<Value> { fatalError() }
}

extension Bindable where Value: AnyObject {
  public subscript<Subject>(dynamicMember keyPath: ReferenceWritableKeyPath<Value, Subject>) -> Binding<Subject> {
    fatalError()
  }
}

extension Bindable where Value: AnyObject, Value: Observable {
  public init(wrappedValue: Value) { fatalError() }
}

public protocol EnvironmentKey {
  associatedtype Value
  static var defaultValue: Value { get }
}

public struct EnvironmentValues {
  nonisolated(unsafe) public static var _current = EnvironmentValues()
  private var values: [ObjectIdentifier: Any] = [:]
  public subscript<Key: EnvironmentKey>(key: Key.Type) -> Key.Value {
    get { values[ObjectIdentifier(key)] as? Key.Value ?? Key.defaultValue }
    set { values[ObjectIdentifier(key)] = newValue }
  }
  public var displayScale: CGFloat = 2
  public var accessibilityReduceMotion: Bool { false }
}

@propertyWrapper
public struct Environment<Value>: DynamicProperty {
  private let keyPath: KeyPath<EnvironmentValues, Value>
  public init(_ keyPath: KeyPath<EnvironmentValues, Value>) { self.keyPath = keyPath }
  public var wrappedValue: Value { EnvironmentValues._current[keyPath: keyPath] }
}

// MARK: Modifiers

public struct Animation: Equatable, Sendable {}

public struct Transaction {
  nonisolated public init() {}
  public var animation: Animation?
}

public func withTransaction<Result>(_ transaction: Transaction, _ body: () throws -> Result) rethrows -> Result { try body() }

public struct Alignment: Equatable, Sendable {
  public static let center = Alignment()
}

extension View {
  nonisolated public func environment<V>(_ keyPath: WritableKeyPath<EnvironmentValues, V>, _ value: V) -> some View {
    _Modified(content: self, environment: { $0[keyPath: keyPath] = value })
  }
  nonisolated public func frame(width: CGFloat? = nil, height: CGFloat? = nil, alignment: Alignment = .center) -> some View {
    _Modified(content: self)
  }
  nonisolated public func id<ID: Hashable>(_ id: ID) -> some View { _Modified(content: self) }
  nonisolated public func opacity(_ opacity: Double) -> some View { _Modified(content: self) }
  nonisolated public func onAppear(perform action: (() -> Void)? = nil) -> some View { _Modified(content: self, appear: action) }
  nonisolated public func onDisappear(perform action: (() -> Void)? = nil) -> some View { _Modified(content: self) }
  nonisolated public func onChange<V: Equatable>(
    of value: V, initial: Bool = false, _ action: @escaping () -> Void
  ) -> some View { _Modified(content: self) }
  nonisolated public func task<T: Equatable>(
    id value: T, priority: TaskPriority = .userInitiated,
    @_inheritActorContext _ action: @escaping @Sendable () async -> Void
  ) -> some View { _Modified(content: self) }
  nonisolated public func navigationTitle(_ titleKey: LocalizedStringKey) -> some View { EmptyView() }
  @_disfavoredOverload
  nonisolated public func navigationTitle<S: StringProtocol>(_ title: S) -> some View { EmptyView() }
  nonisolated public func pickerStyle<S: PickerStyle>(_ style: S) -> some View { EmptyView() }
  nonisolated public func scaledToFill() -> some View { EmptyView() }
  nonisolated public func scaledToFit() -> some View { EmptyView() }
  nonisolated public func tag<V: Hashable>(_ tag: V, includeOptional: Bool = true) -> some View { EmptyView() }
}
