/* limits: an extension of Python with a bug: peak() changes what it reports. */
#include <Python.h>

static long limit = 10;

static PyObject *
set_limit(PyObject *self, PyObject *value)
{
	(void)self;
	limit = PyLong_AsLong(value);
	return PyErr_Occurred() != NULL ? NULL : PyLong_FromLong(limit);
}

static PyObject *
peak(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	return PyLong_FromLong(limit++);
}

static PyMethodDef methods[] = {
	{"set_limit", set_limit, METH_O, NULL},
	{"peak", peak, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
	PyModuleDef_HEAD_INIT, .m_name = "limits", .m_size = -1,
	.m_methods = methods,
};

PyMODINIT_FUNC
PyInit_limits(void)
{
	return PyModule_Create(&module);
}
