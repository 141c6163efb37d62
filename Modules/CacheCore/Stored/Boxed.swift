/// A value behind one reference: as cheap to hand on as an object, and as separate from its copies as any value.
///
/// What passes through many asynchronous calls is kept in it: each of them holds room for its arguments, its result and its
/// error, and a large value is copied by every one. A change makes a new object, so it is for what is handed on far more often
/// than changed.
struct Boxed<Content: Sendable>: Sendable {
  private final class Box: Sendable {
    let content: Content

    init(_ content: Content) { self.content = content }
  }

  private var box: Box

  init(_ content: Content) { box = Box(content) }

  var content: Content {
    _read { yield box.content }
    _modify {
      var changed = box.content
      defer { box = Box(changed) }
      yield &changed
    }
  }

  /// Whether both are one object still: then they are equal.
  func isSame(as other: Self) -> Bool { box === other.box }
}

extension Boxed: CustomStringConvertible {
  var description: String { String(describing: content) }
}
