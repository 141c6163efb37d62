/// A value behind a reference: as cheap to pass as an object, with the semantics of a value.
///
/// It is for values that pass through many asynchronous calls. Each call reserves space for its arguments, its result and its
/// error, and would copy a large value. A change allocates a new object, so such a value should be passed far more often than
/// changed.
package struct Boxed<Content: Sendable>: Sendable {
  private final class Box: Sendable {
    let content: Content

    init(_ content: Content) { self.content = content }
  }

  private var box: Box

  package init(_ content: Content) { box = Box(content) }

  package var content: Content {
    _read { yield box.content }
    _modify {
      var changed = box.content
      defer { box = Box(changed) }
      yield &changed
    }
  }

  /// Returns whether both still refer to the same object and are therefore equal.
  func isSame(as other: Self) -> Bool { box === other.box }
}

extension Boxed: CustomStringConvertible {
  package var description: String { String(describing: content) }
}
