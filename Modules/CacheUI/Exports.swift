// A view needs a manager, its options and a processor, so one import brings all of them.
@_exported public import Etagere
